"""Commands that say what holds a run back and count a network's work: `explain`, `count`."""

import click

from epochwatt.cli.command import COUNT, MODEL, Command, names_in, say


@click.command(
    cls=Command,
    short_help="Explain what holds a run back, by rooflines of its mode.",
    examples=[
        ("epochwatt explain host-local-lenet-disk-w0-bs16", "a run, by the beginning of its id"),
        ("epochwatt explain twin-agx-d1-mobilenet-ssd-w1", "a simulated run"),
    ],
)
@click.argument("run", metavar="RUN", shell_complete=names_in("results/runs/*"))
def explain(run: str) -> None:
    """Explain where the time and the energy of a run's epochs go: launches, arithmetic, memory, the
    loader, constant power; by class of operators, too. Then what each knob of its power mode would
    change, one step up (docs/how-to/explain-a-run.md).

    RUN is the id of a run, or the beginning of one. Ceilings of a measured run come from its own
    machine, those of a simulated run from its simulated board.
    """
    from epochwatt.roofline.explain import (
        explain_run,
        explanation_lines,
        find_counts,
        find_run,
        measured_fits,
    )

    found, epochs = find_run(run)
    if found.provenance == "simulated":
        from epochwatt.twin.ceilings import simulated_fits

        fits = simulated_fits(found.device)
    else:
        fits = measured_fits()
    say(explanation_lines(explain_run(found, epochs, find_counts(found), fits)))


@click.command(
    cls=Command,
    short_help="Count operations, bytes and launches of a network.",
    examples=[
        ("epochwatt count --model resnet50", "training on a mini-batch of 16"),
        (
            "epochwatt count --model bert --task infer --precision fp16 --batch-size 1",
            "inference in half precision",
        ),
        (
            "epochwatt count --model torchvision.models.squeezenet1_1 --like resnet50",
            "a network from a library",
        ),
    ],
)
@click.option(
    "--model",
    metavar="NAME",
    required=True,
    shell_complete=MODEL,
    help="Network, a row of config/workloads.yaml; or module.function that builds one.",
)
@click.option(
    "--like",
    metavar="NAME",
    help="With a function: the network of this package whose input it takes.",
)
@click.option(
    "--batch-size",
    metavar="N",
    type=COUNT,
    default=16,
    show_default=True,
    help="Samples per mini-batch.",
)
@click.option(
    "--task",
    type=click.Choice(["train", "infer"]),
    default="train",
    show_default=True,
    help="infer: forward passes alone.",
)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "tf32", "fp16", "bf16"]),
    default="fp32",
    show_default=True,
    help="Arithmetic; fp16 and bf16 as autocast does it.",
)
def count(model: str, like: str | None, batch_size: int, task: str, precision: str) -> None:
    """Count what one mini-batch of a network asks of a GPU: floating-point operations, bytes to and
    from memory, and kernel launches, by class of operator (docs/reference/counts.md). It needs no
    GPU, and nothing is measured.
    """
    from epochwatt.counting.summary import count_lines  # imports torch

    say(count_lines(model, like, batch_size, task, precision))
