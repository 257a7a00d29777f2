"""Commands for upkeep: `bug-report`, `calibrate-twin`, `completion`."""

from pathlib import Path

import click

from epochwatt.cli.command import DEVICE, PATH, Command, say


@click.command(
    "bug-report",
    cls=Command,
    short_help="Collect what a bug report about a board needs in one file.",
    examples=[
        ("epochwatt bug-report", "a .tar.gz in the current folder, without personal names"),
        ("epochwatt bug-report my-board.tar.gz --keep-names", "a file of this name, with names"),
    ],
)
@click.argument("file", metavar="[FILE]", required=False, type=PATH)
@click.option(
    "--keep-names",
    is_flag=True,
    help="Do not replace serial number and names of host, user, disks and servers.",
)
@click.option(
    "--device",
    metavar="NAME",
    shell_complete=DEVICE,
    help="A file of config/devices/. Default: the board at hand, or else host.",
)
def bug_report(file: Path | None, keep_names: bool, device: str | None) -> None:
    """Write the files of the board that epochwatt reads, ten seconds of samples, and the result of
    `epochwatt doctor` to one .tar.gz file (docs/how-to/check-a-board.md). Look through it before
    you send it.

    FILE must not exist yet. Without it, the file is named after device and time.
    """
    from epochwatt.doctor.bundle import make_bundle

    say(make_bundle(file, device, keep_names))


@click.command(
    "calibrate-twin",
    cls=Command,
    short_help="Fit the simulated boards to the published numbers again.",
    examples=[
        ("epochwatt calibrate-twin", "the fit itself"),
        ("epochwatt calibrate-twin --folds", "as `make validate` does, in minutes"),
    ],
)
@click.option("--folds", is_flag=True, help="Also repeat the fit without each take-away in turn.")
@click.option(
    "--workloads",
    metavar="FOLDER",
    type=PATH,
    default=Path("results/twin/workloads"),
    show_default=True,
    help="Kernel counts of the networks; `snakemake workloads` makes them.",
)
def calibrate_twin(folds: bool, workloads: Path) -> None:
    """Fit the parameters of the simulated boards to the numbers that the SIGMETRICS 2023 paper
    prints, and write them to config/twin/. `make validate` does this and evaluates the fit.
    """
    from epochwatt.claims.numbers_read import write_numbers_read
    from epochwatt.twin.calibrate_twin import recalibrate
    from epochwatt.twin.predicted import write_seen

    write_seen()
    if folds:
        write_numbers_read()
    recalibrate(workloads, folds, click.echo)


@click.command(
    cls=Command,
    short_help="Print the script for Tab completion in your shell.",
    examples=[
        ('eval "$(epochwatt completion bash)"', "in ~/.bashrc"),
        ('eval "$(epochwatt completion zsh)"', "in ~/.zshrc, after compinit"),
        ("epochwatt completion fish | source", "in ~/.config/fish/config.fish"),
    ],
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, devices, networks, studies and runs when
    you press Tab. The command `epochwatt` must be on your PATH.
    """
    from click.shell_completion import get_completion_class

    make = get_completion_class(shell)
    assert make is not None
    root = context.find_root()
    click.echo(make(root.command, {}, "epochwatt", "_EPOCHWATT_COMPLETE").source())
