"""Command `schedule`: training and inference on one board, within budgets."""

from typing import Any

import click

from epochwatt.cli.command import DEVICE, MODEL, POSITIVE, Command, say

ASK = "epochwatt schedule --train mobilenet --infer resnet50 --rate 30 --max-latency-ms 300"


@click.command(
    cls=Command,
    short_help="Plan training beside inference within budgets.",
    examples=[
        (f"{ASK} --max-power-w 30", "both on a simulated AGX Orin"),
        ("epochwatt schedule --train mobilenet --max-power-w 20", "training alone"),
        (f"{ASK} --max-power-w 30 --tables modes.csv", "in modes that you measured"),
    ],
)
@click.option("--train", metavar="NAME", shell_complete=MODEL, help="Network that is trained.")
@click.option("--infer", metavar="NAME", shell_complete=MODEL, help="Network that serves requests.")
@click.option(
    "--rate", "rate_per_s", metavar="N", type=POSITIVE, help="Requests that arrive in a second."
)
@click.option("--max-latency-ms", metavar="MS", type=POSITIVE, help="Limit from arrival to answer.")
@click.option(
    "--max-power-w", metavar="W", type=POSITIVE, required=True, help="Limit of the board's power."
)
@click.option(
    "--power-rule",
    type=click.Choice(["highest", "mean"]),
    default="highest",
    show_default=True,
    help="highest: of the jobs, while they run; mean: over the time in which something runs.",
)
@click.option(
    "--device",
    metavar="NAME",
    shell_complete=DEVICE,
    help="Simulated board. Default: orin. With --tables: the one of several to take.",
)
@click.option(
    "--solver",
    type=click.Choice(["gain", "gmd", "verified", "exhaustive"]),
    default="gain",
    show_default=True,
    help="gain: one choice after the other, where a roofline expects most, until little is left to "
    "gain; gmd: 15, one after the other; verified: 10 random modes, a prediction and up to 5 more; "
    "exhaustive: all.",
)
@click.option(
    "--tables",
    metavar="TABLE",
    help="Sweep or file of modes to take times and powers from, in place of a simulated board.",
)
def schedule(**options: Any) -> int:
    """Choose power mode, mini-batch size and share of training for a board that trains one network
    while it serves requests to another (docs/how-to/schedule.md). Most training within the budgets
    wins; without training, least latency. Exit status 1: no plan keeps them.
    """
    from epochwatt.schedule.question import Request, answer_lines, find_answer

    result = find_answer(Request(**options))
    say(answer_lines(result))
    return 0 if result.plan is not None else 1
