"""Commands that simulate and predict: `what-if`, `recommend`, `score`."""

import os
from typing import Any

import click

from epochwatt.cli.command import (
    COUNT,
    DEVICE,
    MODEL,
    NOT_NEGATIVE,
    OUTPUT_FILE,
    POSITIVE,
    Command,
    Finite,
    Integer,
    Whole,
    say,
)
from epochwatt.columns import TWIN

MEDIA = ("ssd", "hdd", "sd", "emmc")
WHOLE = Whole(min=1)
TOTALS: dict[str, tuple[click.ParamType, str]] = {  # option -> its type and help
    "flops": (POSITIVE, "floating-point operations to train on one sample (multiply-add: two)."),
    "bytes": (POSITIVE, "bytes that kernels read and write in memory to train on one sample."),
    "launches": (WHOLE, "kernels launched per mini-batch."),
    "parameters": (WHOLE, "trained weights."),
    "sample-bytes": (WHOLE, "bytes of one sample as it is copied to the GPU."),
    "file-bytes": (NOT_NEGATIVE, "bytes of one sample's file; 0 if all samples are in memory."),
    "pixels": (NOT_NEGATIVE, "pixels decoded and transformed per sample."),
    "samples": (WHOLE, "samples per epoch."),
}


def _totals(command: Any) -> Any:
    """Add the options that describe a network by its totals."""
    for name, (kind, text) in reversed(TOTALS.items()):
        option = click.option(
            f"--{name}", type=kind, metavar="N", help=f"Instead of --model: {text}"
        )
        command = option(command)
    return command


@click.command(
    "what-if",
    cls=Command,
    short_help="Simulate one epoch: its time, energy and bottleneck.",
    examples=[
        ("epochwatt what-if --device agx --model mobilenet", "the papers' default configuration"),
        (
            "epochwatt what-if --device agx --model mobilenet --storage hdd --workers 8",
            "another storage medium, more loader workers",
        ),
        (
            "epochwatt what-if --device orin --model resnet --power-mode 4,1200,600,2133",
            "a power mode in numbers",
        ),
    ],
)
@click.option(
    "--device",
    metavar="NAME",
    required=True,
    shell_complete=DEVICE,
    help="Simulated board: agx, nx, nano or orin, or a unit of one, such as agx-d1.",
)
@click.option(
    "--model", metavar="NAME", shell_complete=MODEL, help="Network, a row of config/workloads.yaml."
)
@click.option("--storage", type=click.Choice(MEDIA), help="Storage medium of the data set.")
@click.option(
    "--workers", "num_workers", metavar="N", type=Integer(min=0), help="Number of loader workers."
)
@click.option("--batch-size", metavar="N", type=COUNT, help="Samples per mini-batch.")
@click.option(
    "--power-mode",
    metavar="MODE",
    help="A power mode of the device file, or CORES,CPU,GPU,MEMORY with clocks in MHz.",
)
@click.option("--dvfs", type=click.Choice(["on", "off"]), help="on: governors choose the clocks.")
@click.option(
    "--scale", metavar="X", type=POSITIVE, help="Size of the data set relative to the original."
)
@click.option("--cold", is_flag=True, help="Start with an empty page cache.")
@_totals
def what_if(device: str, model: str | None, cold: bool, **options: Any) -> None:
    """Simulate one training epoch on a Jetson board and print its time, its energy, what limits it,
    and how far the answer can be trusted (docs/how-to/what-if.md).

    Options that are left out take the default of the SIGMETRICS 2023 paper, which the answer shows
    for comparison. A network that config/workloads.yaml does not have can be described by its
    totals instead of --model; then all eight are required.
    """
    from epochwatt.twin.what_if import what_if_lines

    totals = {name: options.pop(name.replace("-", "_")) for name in TOTALS}
    settings = {name: value for name, value in options.items() if value is not None}
    lines = what_if_lines(
        device,
        model,
        {name: value for name, value in totals.items() if value is not None},
        {"cold": cold, **settings},
    )
    say(lines)


@click.command(
    cls=Command,
    short_help="Find the best power mode of a board within limits.",
    examples=[
        (
            f"epochwatt recommend --backend {TWIN} --device agx-d1 --model mobilenet"
            " --max-power-w 20",
            "the fastest power mode that draws at most 20 W, by simulated runs",
        ),
        (
            "epochwatt recommend --backend jetson --device orin --model resnet"
            " --max-epoch-s 400 --objective energy",
            "the most economical one that trains an epoch in 400 s, by measured runs",
        ),
    ],
)
@click.option(
    "--backend",
    type=click.Choice(["jetson", "fake", TWIN]),
    required=True,
    help=f"Whose runs the models are fitted to: measured on a Jetson, on a fake board, or simulated"
    f" ({TWIN}).",
)
@click.option(
    "--device",
    metavar="NAME",
    required=True,
    shell_complete=DEVICE,
    help="Board, or a unit of one, such as agx-d1.",
)
@click.option(
    "--model",
    metavar="NAME",
    required=True,
    shell_complete=MODEL,
    help="Network, a row of config/workloads.yaml.",
)
@click.option(
    "--objective",
    type=click.Choice(["time", "energy", "edp"]),
    help="Quantity to minimise; edp is energy x time. Default: time, or energy if --max-epoch-s is"
    " the only limit.",
)
@click.option(
    "--max-power-w", "power_w", metavar="W", type=POSITIVE, help="Limit of mean power, in watts."
)
@click.option(
    "--max-epoch-s", "epoch_s", metavar="S", type=POSITIVE, help="Limit of epoch time, in seconds."
)
@click.option(
    "--max-energy-wh",
    "energy_wh",
    metavar="WH",
    type=POSITIVE,
    help="Limit of energy per epoch, in watt-hours.",
)
@click.option(
    "--max-risk",
    metavar="P",
    type=Finite(min=0, max=0.5, min_open=True),
    help="Highest probability that the mean power of training breaks --max-power-w, such as 0.05."
    " Default: the mode's expected power keeps it, which a mode at the edge breaks about half of"
    " the time.",
)
@click.option("--storage", metavar="NAME", help="Storage medium of the profiled runs.")
@click.option(
    "--workers",
    metavar="N",
    type=Integer(min=0),
    help="Loader workers of the profiled runs.",
)
@click.option("--batch-size", metavar="N", type=COUNT, help="Mini-batch size of the profiled runs.")
@click.option(
    "--method",
    metavar="NAME",
    help="Prediction method (docs/explanation/predictions.md). Default: utilisation.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Also show the one run that would confirm the answer, or its result if it was made.",
)
@click.option("--figure", is_flag=True, help="Also draw the Pareto front.")
@click.option("--nvpmodel", is_flag=True, help="Also print the nvpmodel configuration.")
def recommend(verify: bool, figure: bool, nvpmodel: bool, **options: Any) -> None:
    """Find the power mode of a board that minimises time or energy within limits, by models fitted
    to runs in a few power modes (docs/how-to/recommend-a-power-mode.md). It also writes the modes
    of the Pareto front and, where the board is known, an nvpmodel configuration to
    results/recommend/.

    If no model exists yet, it says which power modes to profile, and how.
    """
    from epochwatt.prediction.recommend import text
    from epochwatt.prediction.recommend.command import Request, advise

    limits = {name: options.pop(name) for name in ("power_w", "epoch_s", "energy_wh")}
    budgets = {name: most for name, most in limits.items() if most is not None}
    given = {name: value for name, value in options.items() if value is not None}
    advice = advise(Request(budgets=budgets, **given))
    say(text.advice_lines(advice))
    paths = []
    if advice.recommendation.front:
        rows = text.write_front(advice)
        paths = [f"{advice.folder}/front.csv"]
        if figure:
            from epochwatt.figures.front import draw_front  # imports matplotlib

            paths = draw_front(advice, rows)
    block = text.write_block(advice)
    say(["", *paths, *([block] if block else []), "", *text.use_lines(advice, block)])
    if verify:
        from epochwatt.prediction.recommend.verify import verify_lines

        say(verify_lines(advice))
    if nvpmodel:
        say(text.block_lines(advice))


@click.command(
    cls=Command,
    short_help="Judge the prediction methods on sweeps of power modes.",
    examples=[
        ("epochwatt score translucence-tx1-5000", "a Jetson TX1 in 736 modes, measured by others"),
        (
            "epochwatt score mine.csv --method physical --method gaussian_process",
            "two methods on a table of your own",
        ),
        (
            "epochwatt score translucence-tx2-20000 --method powertrain"
            " --reference translucence-tx2-5000",
            "PowerTrain, from 416 modes of another workload on the same board",
        ),
    ],
)
@click.argument("sweeps", metavar="SWEEP...", nargs=-1, required=True)
@click.option(
    "--method",
    "methods",
    metavar="NAME",
    multiple=True,
    help="Prediction method; give it again for more. Default: all that need no simulation.",
)
@click.option(
    "--reference",
    metavar="SWEEP",
    help="What methods that transfer learn all modes of (powertrain). Default: another workload of "
    "the same device, of the sweeps that are judged.",
)
@click.option(
    "--draws", metavar="N", type=COUNT, help="Random sets of profiled modes. Default: 10."
)
@click.option(
    "--csv",
    "path",
    metavar="FILE",
    type=OUTPUT_FILE,
    help="Also write all numbers, with their intervals, to FILE.",
)
def score(sweeps: tuple[str, ...], methods: tuple[str, ...], **options: Any) -> None:
    """Judge all prediction methods on sweeps: public ones by name, packages or files of mode tables
    (docs/how-to/score-a-sweep.md). Each method learns from 4, 10, 25, 50 and 100 modes and predicts
    all others.

    It prints errors of time, power and energy, what intervals hold, what the fastest mode within a
    power budget costs and how often it breaks the budget.
    """
    from epochwatt.open_data.read import find_tables
    from epochwatt.prediction.evaluation.score_sweeps import judged_methods, score_tables
    from epochwatt.prediction.evaluation.sweep_table import as_text, write_scores
    from epochwatt.prediction.evaluation.sweep_text import text_lines

    scores = score_tables(
        [table for name in sweeps for table in find_tables(name)],
        methods or judged_methods(),
        n_draws=options["draws"],
        processes=os.cpu_count() or 1,
        say=lambda line: say([f"scored {line}"], err=True),
        references=find_tables(options["reference"]) if options["reference"] else (),
    )
    say(text_lines(as_text(scores.rows), scores.left_out))
    if options["path"]:
        write_scores(options["path"], scores.rows)
        click.echo(f"all numbers: {options['path']}")
