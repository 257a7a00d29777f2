"""Commands for upkeep: `bug-report`, `import-2023`, `calibrate-twin`, `completion`."""

from pathlib import Path

import click

from epochwatt.cli.command import COUNT, DEVICE, MODEL, PATH, Command, say


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
    "import-2023",
    cls=Command,
    short_help="Import logs written by the SIGMETRICS 2023 scripts.",
    examples=[
        (
            "epochwatt import-2023 logs --device agx --instance d1 --model resnet --storage ssd"
            " --batch-size 16 --power-mode g --dvfs off",
            "all runs of one folder",
        )
    ],
)
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option(
    "--device",
    metavar="NAME",
    required=True,
    shell_complete=DEVICE,
    help="Board, a file of config/devices/.",
)
@click.option("--instance", metavar="NAME", required=True, help="Unit of the board, such as d1.")
@click.option(
    "--model",
    metavar="NAME",
    required=True,
    shell_complete=MODEL,
    help="Network, a row of config/workloads.yaml.",
)
@click.option("--storage", metavar="NAME", required=True, help="Storage medium, such as ssd.")
@click.option(
    "--power-mode", metavar="MODE", required=True, help="Power mode of the device file, such as g."
)
@click.option(
    "--batch-size", metavar="N", required=True, type=COUNT, help="Samples per mini-batch."
)
@click.option(
    "--dvfs",
    type=click.Choice(["on", "off"]),
    required=True,
    help="on: governors chose the clocks.",
)
@click.option(
    "--setup",
    type=click.Choice(["own", "sigmetrics2023", "hipcw2021"]),
    default="sigmetrics2023",
    show_default=True,
    help="Whose procedure the runs followed.",
)
def import_2023(folder: Path, **options: str | int) -> None:
    """Turn the logs in FOLDER into runs in measured/, to show them beside your own
    (docs/how-to/import-2023.md). The options add what the logs do not contain; they hold for
    all runs of FOLDER.
    """
    from epochwatt.import_2023.records import RunOptions, import_folder

    say(import_folder(folder, RunOptions(**options)))  # type: ignore[arg-type]


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
    from epochwatt.twin.calibration.fit_numbers import write_seen
    from epochwatt.twin.validation.validate_twin import recalibrate

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
