"""Command `serve-and-train`: train in the gaps of a stream of requests."""

from typing import Any

import click

from epochwatt.cli.command import COUNT, DEVICE, MODEL, POSITIVE, Command, Integer, say


@click.command(
    "serve-and-train",
    cls=Command,
    short_help="Train in the gaps of a stream of requests; measure both.",
    examples=[
        (
            "epochwatt serve-and-train --train lenet --infer mobilenet --rate 10 --batch 4"
            " --seconds 60",
            "as much training as fits",
        ),
        (
            "epochwatt serve-and-train --train resnet --infer lenet --rate 50 --batch 16"
            " --n-train 2 --seconds 60 --arrivals poisson",
            "at most two mini-batches of training between two of requests",
        ),
    ],
)
@click.option(
    "--train", metavar="NAME", required=True, shell_complete=MODEL, help="Network that trains."
)
@click.option(
    "--infer", metavar="NAME", required=True, shell_complete=MODEL, help="Network that answers."
)
@click.option(
    "--rate",
    metavar="R",
    type=POSITIVE,
    help="Requests a second. Default, with a file: as in the file.",
)
@click.option(
    "--batch", metavar="B", type=COUNT, required=True, help="Requests that are served together."
)
@click.option(
    "--n-train",
    metavar="N",
    type=Integer(min=0),
    help="Most mini-batches of training between two of requests. Default: as many as fit.",
)
@click.option(
    "--seconds", metavar="S", type=POSITIVE, required=True, help="How long requests arrive."
)
@click.option(
    "--arrivals",
    metavar="PROCESS",
    default="constant",
    show_default=True,
    help="constant, poisson, or a file with one time a line, in seconds.",
)
@click.option(
    "--queue",
    metavar="N",
    type=COUNT,
    help="Most requests that wait; more are refused. Default: ten mini-batches.",
)
@click.option(
    "--device",
    metavar="NAME",
    shell_complete=DEVICE,
    help="A file of config/devices/. Default: the board at hand, or else host.",
)
def serve_and_train(**options: Any) -> int:
    """Train one network in the gaps that a stream of requests to another leaves, both in one
    process (docs/how-to/serve-and-train.md).

    A mini-batch of requests is served as soon as it is complete. Mini-batches of training follow
    while they end before the next one is expected. Samples are made up and in memory; the machine's
    power mode stays as it is. Ctrl-C ends it and keeps what was measured.
    """
    from epochwatt.schedule.interleaved import measure, outcome_lines, plan_for

    given = {
        "train": options["train"],
        "infer": options["infer"],
        "rate_per_s": options["rate"],
        "batch_size": options["batch"],
        "n_train": options["n_train"],
        "seconds": options["seconds"],
        "arrivals": options["arrivals"],
        "queue": options["queue"],
    }
    record, status = measure(plan_for(given), options["device"])
    if record is not None:
        say(outcome_lines(record))
    return status
