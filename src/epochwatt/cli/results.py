"""Commands that show results: `summary`, `page`, `report`, `compare`, `explain`."""

from pathlib import Path

import click

from epochwatt.cli.command import NOT_NEGATIVE, OUTPUT_FILE, PATH, RESULT, command, option, say
from epochwatt.errors import EpochwattError
from epochwatt.project import is_studied_here, start_command

PAGES = (  # the last is the first to open
    ("report", "results/report.html", "Snakemake's own, with the graph of the rules"),
    ("page", "results/index.html", "open this one: it shows all of it in any browser, offline"),
)


@command("Print what was trained and where the time went.")
@click.argument("folder", metavar="[FOLDER]", required=False, type=PATH)
def summary(folder: Path | None) -> None:
    """Print what was trained, where the time went, and where page, figures and tables are.

    With FOLDER, or without results where measured/ has runs of your own script: the text of
    `epochwatt page FOLDER`. That needs no checkout.

    Examples:
    # the text that `make run` ends with
    epochwatt summary
    # your own runs
    epochwatt summary measured
    """
    from epochwatt.study.imported import find_own_runs

    path, measured = Path("results/summary.txt"), Path("measured")
    if folder is None and not path.exists():
        has_own = not Path("results").exists() and find_own_runs(measured)[1]
        folder = measured if has_own or not is_studied_here() else None
    if folder is not None:
        from epochwatt.pages.first_look import read_own_runs, text_lines

        say(text_lines(read_own_runs(folder)))
        return
    from epochwatt.study.not_made import read

    failures = read().failures
    if not path.exists() and not failures:
        raise EpochwattError(
            f"{path} does not exist yet",
            do=f"{start_command()} (on a Jetson: .venv/bin/snakemake --profile jetson)",
        )
    if path.exists():
        click.echo(path.read_text("utf-8"))
    click.echo("figures  results/figures/     tables  results/tables/")
    for job in failures:
        say([f"NOT MADE: {job.rule}: {job.reason.splitlines()[0]}  {job.log}".rstrip()])
    for name, file, says in PAGES:
        if Path(file).exists():
            click.echo(f"{name:<8} {file:<20} {says}")


@command("Make a page of your own script's runs, without a checkout.")
@click.argument("folder", metavar="[FOLDER]", default="measured", type=PATH)
def page(folder: Path) -> None:
    """Make FOLDER/page.html of the runs of EpochMonitor in FOLDER (default: measured), and print
    the same as text: epochs, where their time goes, energy, power, flags, and what would help.

    Examples:
    # then open measured/page.html
    epochwatt page
    """
    from epochwatt.pages.first_look import read_own_runs, text_lines, write_page

    runs = read_own_runs(folder)
    path = write_page(folder, runs)
    say([*text_lines(runs), "", f"page  {path}"])


@command("Make results/report.html if something it shows has changed.")
def report() -> None:
    """Make results/report.html, one file with every figure and table, if something it shows is
    newer than it. It opens in any browser, offline.

    Examples:
    # then open results/report.html
    epochwatt report
    """
    from epochwatt.maintenance.report import make_report

    click.echo(make_report())


@command("Compare the times and energies of two sets of runs.")
@click.argument("a", metavar="A", type=RESULT)
@click.argument("b", metavar="B", type=RESULT)
@option(
    "--margin PCT",
    "Largest difference, in %, that counts as equivalent.",
    NOT_NEGATIVE,
    default=5.0,
)
@option("--csv PATH", "Write all ratios to this CSV file, too.", OUTPUT_FILE)
def compare(a: str, b: str, margin: float, csv: Path | None) -> None:
    """Compare two sets of runs: the ratio B / A of times and energies with its 95 % interval, and
    whether they are equivalent (docs/how-to/compare-runs.md).

    A and B are each the id of a run, a pattern of ids in quotes, or a folder of results.

    Examples:
    # measured runs with simulated ones
    epochwatt compare 'jetson-nx-*' 'twin-nx-*'
    # two folders of results, 2 % allowed
    epochwatt compare before results --margin 2
    """
    from epochwatt.analysis.compare import compare_lines

    say(compare_lines(a, b, margin, csv))


@command("Explain what holds a run back, by rooflines of its mode.")
@click.argument("run", metavar="RUN", type=RESULT)
def explain(run: str) -> None:
    """Explain where the time and the energy of a run's epochs go: launches, arithmetic, memory, the
    loader, constant power; by class of operators, too. Then what each knob of its power mode would
    change, one step up (docs/how-to/explain-a-run.md).

    RUN is the id of a run, the beginning of one, or a folder with a run of EpochMonitor. Ceilings
    of a measured run come from its own machine, those of a simulated run from its simulated board.

    Examples:
    # a run, by the beginning of its id
    epochwatt explain host-local-lenet-disk-w0-bs16
    # a simulated run
    epochwatt explain twin-agx-d1-mobilenet-ssd-w1
    """
    from epochwatt.roofline.explain import explain_run, explanation_lines, split_lines
    from epochwatt.roofline.find_run import find_counts, find_run, measured_fits

    found, epochs = find_run(run)
    is_own = bool(epochs[0]["imported"])
    try:
        work = find_counts(found, is_own)
        if found.provenance == "simulated":
            from epochwatt.twin.ceilings import simulated_fits

            fits = simulated_fits(found.device)
        else:
            fits = measured_fits()
        lines = explanation_lines(explain_run(found, epochs, work, fits))
    except EpochwattError as error:
        if not is_own:
            raise
        lines = split_lines(found, epochs, error)
    say(lines)
