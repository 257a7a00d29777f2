"""Commands for data that is passed on: `export`, `validate`."""

from pathlib import Path

import click

from epochwatt.cli.command import PATH, Command, names_in, say


@click.command(
    cls=Command,
    short_help="Make a package of sweeps or runs for others.",
    examples=[
        ("epochwatt export my-sweep --output my-sweep --licence CC-BY-4.0", "a folder"),
        ("epochwatt export 'host-*' --output host.zip --licence CC0-1.0", "runs, as one file"),
        ("epochwatt export theirs.csv --output theirs --licence MIT", "a plain table of modes"),
    ],
)
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=names_in("results/sweeps/*")
)
@click.option(
    "--output", metavar="PATH", required=True, type=PATH, help="New folder, or .zip file."
)
@click.option(
    "--licence",
    metavar="SPDX",
    default="",
    help="What others may do with the data, such as CC-BY-4.0. Default: what its authors say.",
)
@click.option("--title", metavar="TEXT", default="", help="What it is, in a line.")
@click.option("--creator", metavar="TEXT", default="", help="Who measured or simulated.")
@click.option("--source", metavar="URL", default="", help="Where the data comes from.")
@click.option("--citation", metavar="TEXT", default="", help="How to cite it.")
def export(names: tuple[str, ...], output: Path, **given: str) -> None:
    """Write tables with their schema, units, provenance, licence, boards and checksums to one
    folder or .zip file (docs/how-to/share-a-sweep.md). Programs read it as a Frictionless Data
    Package or as Croissant.

    NAME is a sweep (`epochwatt sweeps` lists the public ones), a CSV table of modes, a package, a
    study, or a run (or a pattern of runs in quotes). Measured, public and simulated rows come into
    tables of their own; the name of a package with simulated rows says so.
    """
    from epochwatt.open_data.export import export as write
    from epochwatt.open_data.package import Terms

    say(write(names, output, Terms(**given)))


@click.command(
    cls=Command,
    short_help="Check a package or a table of modes, cell by cell.",
    examples=[
        ("epochwatt validate my-sweep.zip", "a package"),
        ("epochwatt validate theirs.csv", "a plain table of modes"),
    ],
)
@click.argument("path", metavar="PATH", type=PATH)
def validate(path: Path) -> int:
    """Check that a package is as it was written: checksums, columns, units, every cell, licence,
    and that name, metadata and tables say the same of where the rows come from. Of a CSV file of
    modes, check columns and cells.

    PATH is a folder, a .zip or a .csv file. The exit status is 1 if something is wrong.
    """
    from epochwatt.open_data.read import report_lines

    lines, valid = report_lines(path)
    say(lines)
    return 0 if valid else 1
