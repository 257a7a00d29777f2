"""Commands that show results: `summary`, `report`, `compare`."""

from pathlib import Path

import click

from epochwatt.cli.command import NOT_NEGATIVE, OUTPUT_FILE, Command, names_in, say
from epochwatt.errors import EpochwattError

PAGES = (  # the last is the first to open
    ("report", "results/report.html", "Snakemake's own, with the graph of the rules"),
    ("page", "results/index.html", "open this one: it shows all of it in any browser, offline"),
)


@click.command(
    cls=Command,
    short_help="Print what was trained and where the time went.",
    examples=[("epochwatt summary", "the text that `make run` ends with")],
)
def summary() -> None:
    """Print what was trained, where the time went, and where page, figures and tables are."""
    from epochwatt.study.not_made import read

    path = Path("results/summary.txt")
    failures = read().failures
    if not path.exists() and not failures:
        raise EpochwattError(
            f"{path} does not exist yet",
            do="make run (on a Jetson: .venv/bin/snakemake --profile jetson)",
        )
    if path.exists():
        click.echo(path.read_text("utf-8"))
    click.echo("figures  results/figures/     tables  results/tables/")
    for job in failures:
        say([f"NOT MADE: {job.rule}: {job.reason.splitlines()[0]}  {job.log}".rstrip()])
    for name, page, says in PAGES:
        if Path(page).exists():
            click.echo(f"{name:<8} {page:<20} {says}")


@click.command(
    cls=Command,
    short_help="Make results/report.html if something it shows has changed.",
    examples=[("epochwatt report", "then open results/report.html")],
)
def report() -> None:
    """Make results/report.html, one file with every figure and table, if something it shows is
    newer than it. It opens in any browser, offline.
    """
    from epochwatt.maintenance.report import make_report

    click.echo(make_report())


RESULT = names_in("results/runs/*")


@click.command(
    cls=Command,
    short_help="Compare the times and energies of two sets of runs.",
    examples=[
        ("epochwatt compare 'jetson-nx-*' 'twin-nx-*'", "measured runs with simulated ones"),
        ("epochwatt compare before results --margin 2", "two folders of results, 2 % allowed"),
    ],
)
@click.argument("a", metavar="A", shell_complete=RESULT)
@click.argument("b", metavar="B", shell_complete=RESULT)
@click.option(
    "--margin",
    metavar="PCT",
    type=NOT_NEGATIVE,
    default=5.0,
    show_default=True,
    help="Largest difference, in %, that counts as equivalent.",
)
@click.option(
    "--csv", metavar="PATH", type=OUTPUT_FILE, help="Write all ratios to this CSV file, too."
)
def compare(a: str, b: str, margin: float, csv: Path | None) -> None:
    """Compare two sets of runs: the ratio B / A of times and energies with its 95 % interval, and
    whether they are equivalent (docs/how-to/compare-runs.md).

    A and B are each the id of a run, a pattern of ids in quotes, or a folder of results.
    """
    from epochwatt.analysis.compare import compare_lines

    say(compare_lines(a, b, margin, csv))
