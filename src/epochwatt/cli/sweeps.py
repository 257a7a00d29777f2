"""Commands for sweeps of modes: `sweeps`, `convert-sweep`."""

from pathlib import Path

import click

from epochwatt.cli.command import OUTPUT_FILE, PATH, Command, say
from epochwatt.errors import ConfigError


def sweep_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return the sweeps whose names begin with what is typed."""
    from epochwatt.sweeps.find import names

    return [name for name in names() if name.startswith(typed)]


def _formats(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    from epochwatt.sweeps.public.readers import FORMATS

    return [name for name in FORMATS if name.startswith(typed)]


PUBLIC_DATA = click.option(
    "--public-data",
    metavar="FOLDER",
    type=PATH,
    help="Folder with your copies of others' repositories. Default: $EPOCHWATT_PUBLIC_DATA.",
)


@click.command(
    cls=Command,
    short_help="List sweeps of modes: yours and those of others.",
    examples=[
        ("epochwatt sweeps", "all of them"),
        ("epochwatt sweeps zeus-v100", "who measured it, its licence, its workloads"),
        ("epochwatt sweeps opml19-tx2 --public-data ~/clones", "one that you have to fetch"),
    ],
)
@click.argument("names", metavar="[NAME...]", nargs=-1, shell_complete=sweep_names)
@PUBLIC_DATA
def sweeps(names: tuple[str, ...], public_data: Path | None) -> None:
    """List sweeps: tables of time and power of workloads in many modes of a device. They are yours
    (results/sweeps/) or were measured and published by others (docs/how-to/use-public-sweeps.md).

    With NAMEs: source, licence, caveats and workloads of each.
    """
    from epochwatt.sweeps.listing import details, listing

    if not names:
        say(listing(Path(), public_data))
    for name in names:
        say(details(name, Path(), public_data))


@click.command(
    "convert-sweep",
    cls=Command,
    short_help="Convert measurements by others to a table of modes.",
    examples=[
        ("epochwatt convert-sweep zeus summary_power_a40.csv --output a40.csv.gz", "one file"),
        (
            "epochwatt convert-sweep translucence xavier_image_source.csv --output xavier.csv",
            "another board of the same authors",
        ),
    ],
)
@click.argument("format", metavar="FORMAT", shell_complete=_formats)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@click.option(
    "--output", metavar="TABLE", required=True, type=OUTPUT_FILE, help="New table: .csv or .csv.gz."
)
@click.option("--sweep", metavar="NAME", help="Name of the sweep. Default: that of TABLE.")
@click.option("--device", metavar="NAME", default="", help="The device, if FILE does not name it.")
@click.option(
    "--only",
    metavar="PATTERN",
    default="*",
    help="Read only these tables of a FILE that holds several.",
)
def convert_sweep(
    format: str,  # noqa: A002  as it is called on the command line
    files: tuple[Path, ...],
    output: Path,
    sweep: str | None,
    device: str,
    only: str,
) -> None:
    """Convert the authors' own files, as they are in their repository, to one table of modes.

    FORMAT is one of translucence, zeus, energy-time-fairness, ali, opml19, hkbu, broncospace,
    ellis (docs/how-to/use-public-sweeps.md). Files that say nothing about modes, or copy another
    one, are refused.
    """
    from epochwatt.sweeps.find import ENDINGS
    from epochwatt.sweeps.listing import conversion_lines
    from epochwatt.sweeps.mode_table import write_mode_tables
    from epochwatt.sweeps.public.convert import convert
    from epochwatt.sweeps.public.readers import Wanted

    if not output.name.endswith(ENDINGS):
        raise ConfigError("not the name of a table", found=str(output), allowed=ENDINGS)
    name = sweep or output.name.partition(".")[0]
    tables, left_out = convert(format, files, Wanted(name, device, only))
    write_mode_tables(output, tables)
    say(conversion_lines(tables, left_out, output))
