"""Commands for tables of modes and packages: `sweeps`, `convert-sweep`, `export`, `validate`."""

import os
from pathlib import Path

import click

from epochwatt.cli.command import OUTPUT_FILE, OWN_SWEEP, PATH, SWEEP, Name, command, option, say
from epochwatt.errors import ConfigError


def _formats() -> list[str]:
    from epochwatt.sweeps.public.readers import FORMATS

    return list(FORMATS)


@command("List sweeps of modes: yours and those of others.")
@click.argument("names", metavar="[NAME...]", nargs=-1, type=SWEEP)
@option(
    "--public-data FOLDER",
    "Folder with your copies of others' repositories. Default: $EPOCHWATT_PUBLIC_DATA.",
    PATH,
)
def sweeps(names: tuple[str, ...], public_data: Path | None) -> None:
    """List sweeps: tables of time and power of workloads in many modes of a device. They are yours
    (results/sweeps/) or were measured and published by others (docs/how-to/use-public-sweeps.md).

    With NAMEs: source, licence, caveats and workloads of each.

    Examples:
    # all of them
    epochwatt sweeps
    # who measured it, its licence, its workloads
    epochwatt sweeps zeus-v100
    # one that you have to fetch
    epochwatt sweeps opml19-tx2 --public-data ~/clones
    """
    from epochwatt.sweeps.find import details, listing

    if not names:
        say(listing(Path(), public_data))
    for name in names:
        say(details(name, Path(), public_data))


@command("Convert measurements by others to a table of modes.", "convert-sweep")
@click.argument("format_", metavar="FORMAT", type=Name(_formats))
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@option("--output TABLE", "New table: .csv or .csv.gz.", OUTPUT_FILE, required=True)
@option("--sweep NAME", "Name of the sweep. Default: that of TABLE.")
@option("--device NAME", "The device, if FILE does not name it.")
@option("--only PATTERN", "Read only these tables of a FILE that holds several.")
def convert_sweep(
    format_: str, files: tuple[Path, ...], output: Path, sweep: str | None, **known: str | None
) -> None:
    """Convert the authors' own files, as they are in their repository, to one table of modes.

    FORMAT is one of translucence, zeus, energy-time-fairness, ali, opml19, hkbu, broncospace,
    ellis (docs/how-to/use-public-sweeps.md). Files that say nothing about modes, or copy another
    one, are refused.

    Examples:
    # one file
    epochwatt convert-sweep zeus summary_power_a40.csv --output a40.csv.gz
    # another board of the same authors
    epochwatt convert-sweep translucence xavier_image_source.csv --output xavier.csv
    """
    from epochwatt.sweeps.find import ENDINGS, conversion_lines
    from epochwatt.sweeps.mode_table import write_mode_tables
    from epochwatt.sweeps.public.convert import convert
    from epochwatt.sweeps.public.readers import Wanted

    if not output.name.endswith(ENDINGS):
        raise ConfigError("not the name of a table", found=str(output), allowed=ENDINGS)
    name = sweep or output.name.partition(".")[0]
    wanted = Wanted(name, **{key: text for key, text in known.items() if text})
    tables, left_out = convert(format_, files, wanted)
    write_mode_tables(output, tables)
    say(conversion_lines(tables, left_out, output))


@command("Make a package of sweeps or runs for others.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=OWN_SWEEP)
@option("--output PATH", "New folder, or .zip file.", PATH, required=True)
@option(
    "--licence SPDX",
    "What others may do with the data, such as CC-BY-4.0. Default: what its authors say.",
)
@option("--title TEXT", "What it is, in a line.")
@option("--creator TEXT", "Who measured or simulated.")
@option("--source URL", "Where the data comes from.")
@option("--citation TEXT", "How to cite it.")
def export(names: tuple[str, ...], output: Path, **terms: str | None) -> None:
    """Write tables with their schema, units, provenance, licence, boards and checksums to one
    folder or .zip file (docs/how-to/share-a-sweep.md). Programs read it as a Frictionless Data
    Package or as Croissant.

    NAME is a sweep (`epochwatt sweeps` lists the public ones), a CSV table of modes, a package, a
    study, a run (or a pattern of runs in quotes), or a folder of runs of EpochMonitor. Measured,
    public and simulated rows come into tables of their own; the name of a package with simulated
    rows says so.

    Examples:
    # a folder
    epochwatt export my-sweep --output my-sweep --licence CC-BY-4.0
    # runs, as one file
    epochwatt export 'host-*' --output host.zip --licence CC0-1.0
    # a plain table of modes
    epochwatt export theirs.csv --output theirs --licence MIT
    """
    from epochwatt.analysis.own_runs import own_results
    from epochwatt.open_data.export import RESULTS
    from epochwatt.open_data.export import export as write
    from epochwatt.open_data.package import Terms
    from epochwatt.study.imported import find_own_runs

    package_terms = Terms(**{name: text or "" for name, text in terms.items()})
    found = [find_own_runs(name) for name in names]
    folders = {folder for folder, _ in found}
    are_own_runs = all(runs for _, runs in found) and len(folders) == 1
    if are_own_runs and (any(map(os.path.isdir, names)) or not RESULTS.is_dir()):
        (folder,) = folders
        all_runs = {run_id: run for _, runs in found for run_id, run in runs.items()}
        with own_results(folder, all_runs) as results:
            say(write([*all_runs], output, package_terms, results, folder))
    else:
        say(write(names, output, package_terms))


@command("Check a package or a table of modes, cell by cell.")
@click.argument("path", metavar="PATH", type=PATH)
def validate(path: Path) -> int:
    """Check that a package is as it was written: checksums, columns, units, every cell, licence,
    and that name, metadata and tables say the same of where the rows come from. Of a CSV file of
    modes, check columns and cells.

    PATH is a folder, a .zip or a .csv file. The exit status is 1 if something is wrong.

    Of a folder with records of EpochMonitor, check each file of them.

    Examples:
    # a package
    epochwatt validate my-sweep.zip
    # a plain table of modes
    epochwatt validate theirs.csv
    """
    from epochwatt.open_data.read import report_lines

    lines, valid = report_lines(path)
    say(lines)
    return 0 if valid else 1
