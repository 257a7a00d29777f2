"""Commands for upkeep: `init`, `bug-report`, `calibrate-twin`, `completion`."""

import shlex
import shutil
import sys
from pathlib import Path

import click

from epochwatt.cli.command import BOARD_AT_HAND, PATH, command, option, say


@command("Make a folder to work in, without a checkout.")
@click.argument("folder", metavar="FOLDER", type=PATH)
def init(folder: Path) -> None:
    """Fill a new or empty folder with config/, profiles/ and a Snakefile, which starts the workflow
    of this installation. In it, `snakemake --profile profiles/host` does what `make run` does in a
    checkout (docs/how-to/deploy.md).

    Examples:
    # a folder for a study of your own
    epochwatt init my-study
    """
    from epochwatt.project import lay_out

    studies = lay_out(folder)
    beside = Path(sys.executable).with_name("snakemake")
    snakemake = (
        "snakemake" if shutil.which("snakemake") == str(beside) else shlex.quote(str(beside))
    )
    without_torch = "   # both papers on simulated boards; there is no torch to train with"
    say(
        [
            f"made {folder}: config/ (what is studied: {studies}), profiles/, Snakefile",
            f"  cd {shlex.quote(str(folder))}",
            f"  {snakemake} --profile profiles/host{without_torch if studies != 'auto' else ''}",
            "then open results/index.html",
        ]
    )


@command("Collect what a bug report about a board needs in one file.", "bug-report")
@click.argument("file", metavar="[FILE]", required=False, type=PATH)
@option("--keep-names", "Do not replace serial number and names of host, user, disks and servers.")
@BOARD_AT_HAND
def bug_report(file: Path | None, keep_names: bool, device: str | None) -> None:
    """Write the files of the board that epochwatt reads, ten seconds of samples, and the result of
    `epochwatt doctor` to one .tar.gz file (docs/how-to/check-a-board.md). Look through it before
    you send it.

    FILE must not exist yet. Without it, the file is named after device and time.

    Examples:
    # a .tar.gz in the current folder, without personal names
    epochwatt bug-report
    # a file of this name, with names
    epochwatt bug-report my-board.tar.gz --keep-names
    """
    from epochwatt.doctor.bundle import make_bundle

    say(make_bundle(file, device, keep_names))


@command("Fit the simulated boards to the published numbers again.", "calibrate-twin")
@option("--folds", "Also repeat the fit without each take-away in turn.")
@option("--only-power", "Leave all but the parameters of power as they are, in each fold, too.")
@option(
    "--workloads FOLDER",
    "Kernel counts of the networks; `snakemake workloads` makes them.",
    PATH,
    default=Path("results/twin/workloads"),
)
def calibrate_twin(folds: bool, only_power: bool, workloads: Path) -> None:
    """Fit the parameters of the simulated boards to the numbers that the SIGMETRICS 2023 paper
    prints, and write them to config/twin/. `make validate` does this and evaluates the fit.

    Examples:
    # the fit itself
    epochwatt calibrate-twin
    # as `make validate` does, in minutes
    epochwatt calibrate-twin --folds --only-power
    """
    from epochwatt.claims.numbers_read import write_numbers_read
    from epochwatt.twin.calibrate_twin import recalibrate
    from epochwatt.twin.predicted import write_seen

    write_seen()
    if folds:
        write_numbers_read()
    recalibrate(workloads, folds, click.echo, only_power)


@command("Print the script for Tab completion in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, devices, networks, studies and runs when
    you press Tab. The command `epochwatt` must be on your PATH.

    Examples:
    # in ~/.bashrc
    eval "$(epochwatt completion bash)"
    # in ~/.zshrc, after compinit
    eval "$(epochwatt completion zsh)"
    # in ~/.config/fish/config.fish
    epochwatt completion fish | source
    """
    from click.shell_completion import get_completion_class

    make = get_completion_class(shell)
    assert make is not None
    root = context.find_root()
    click.echo(make(root.command, {}, "epochwatt", "_EPOCHWATT_COMPLETE").source())
