"""Command `profile`: a board's best power mode, one by running modes."""

import shlex
from typing import Any

import click

from epochwatt.cli.command import COUNT, DEVICE, MODEL, POSITIVE, Command, Integer, say
from epochwatt.cli.sweeps import sweep_names
from epochwatt.columns import TWIN
from epochwatt.errors import EpochwattError


@click.command(
    cls=Command,
    short_help="Run power modes of a board; answer with a measured one.",
    examples=[
        (
            "epochwatt profile --device orin --model resnet --max-power-w 30 --max-minutes 30",
            "on the board: its fastest mode within 30 W, one in half an hour",
        ),
        (
            f"epochwatt profile --backend {TWIN} --device orin --model resnet --max-power-w 30"
            " --max-minutes 30",
            "the same on a simulated board, in seconds",
        ),
        (
            "epochwatt profile --replay translucence-tx1-5000 --max-power-w 8 --max-minutes 15",
            "a table of 736 modes that others measured plays the board",
        ),
        (
            "epochwatt profile --device host --model lenet --max-minutes 5",
            "numbers of threads on this machine",
        ),
    ],
)
@click.option(
    "--device",
    metavar="NAME",
    shell_complete=DEVICE,
    help="Board, or a unit of one, such as agx-d1; host: this machine.",
)
@click.option(
    "--model", metavar="NAME", shell_complete=MODEL, help="Network, a row of config/workloads.yaml."
)
@click.option(
    "--max-minutes",
    metavar="T",
    type=POSITIVE,
    required=True,
    help="Limit of board time: switching, settling and warming up included.",
)
@click.option("--max-power-w", metavar="W", type=POSITIVE, help="Limit of mean power, in watts.")
@click.option(
    "--objective",
    type=click.Choice(["time", "energy"]),
    default="time",
    help="Quantity to minimise. Default: time.",
)
@click.option(
    "--backend",
    type=click.Choice(["jetson", "host", TWIN]),
    help=f"Where modes are run; {TWIN}: simulated. Default: on the device.",
)
@click.option(
    "--replay",
    metavar="SWEEP",
    shell_complete=sweep_names,
    help="Run nothing: a table of modes plays the board (`epochwatt sweeps` lists them).",
)
@click.option("--storage", metavar="NAME", help="Storage medium of the data set.")
@click.option("--workers", metavar="N", type=Integer(min=0), help="Loader workers. Default: 4.")
@click.option("--batch-size", metavar="N", type=COUNT, help="Mini-batch size. Default: 16.")
@click.option(
    "--method",
    metavar="NAME",
    help="Prediction method that chooses the modes. Default: utilisation.",
)
def profile(**options: Any) -> int:
    """Find a board's best power mode by running modes (docs/how-to/profile-a-board.md).

    Each mode trains some forty mini-batches. The next one is the mode that promises most, by what
    was measured so far. It ends when another mode costs more than it can save, or when the time is
    over. The answer is a mode that was measured. Ctrl-C keeps what is measured; the same command
    goes on from there.
    """
    from epochwatt.prediction.profile.command import Request, profile_of
    from epochwatt.prediction.profile.search import search
    from epochwatt.prediction.profile.text import answer_lines, asked_lines, mode_line

    given = {name: value for name, value in options.items() if value is not None}
    request = Request(device=given.pop("device", None), model=given.pop("model", None), **given)
    one = profile_of(request, say=lambda line: say([line], err=True))
    say(asked_lines(one))
    command = ".venv/bin/epochwatt " + shlex.join(["profile", *_options(options)])
    try:
        search(one, say=lambda profile, ran: say([mode_line(profile, ran)]))
    except KeyboardInterrupt:
        say(answer_lines(one, command))
        return 130
    except EpochwattError:
        if one.ran:
            say(answer_lines(one, command))
        raise
    say(answer_lines(one, command))
    return 0 if one.best is not None else 1


def _options(options: dict[str, Any]) -> list[str]:
    """Return options as they are typed."""
    given = {name: value for name, value in options.items() if value is not None}
    default = {"objective": "time"}
    words = []
    for name, value in given.items():
        if default.get(name) != value:
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            words += [f"--{name.replace('_', '-')}", shown]
    return words
