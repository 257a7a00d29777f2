"""Commands that predict: `what-if`, `recommend`, `profile`, `schedule`, `score`, `count`, `fit`."""

import json
import os
import shlex
from typing import Any

import click

from epochwatt.cli.command import (
    BOARD_AT_HAND,
    COUNT,
    COUNT_OR_0,
    DEVICE,
    MODEL,
    NOT_NEGATIVE,
    OUTPUT_FILE,
    PATH,
    POSITIVE,
    RUN,
    SWEEP,
    Finite,
    command,
    option,
    say,
    without_none,
)
from epochwatt.columns import TWIN
from epochwatt.errors import EpochwattError

WHOLE = Finite(min=1, whole=True)
RISK = Finite(min=0, max=0.5, min_open=True)
NETWORK = "Network, a row of config/workloads.yaml."
TOTALS = {  # option that describes a network instead of --model -> its type and help
    "flops": (POSITIVE, "floating-point operations to train on one sample (multiply-add: two)."),
    "bytes": (POSITIVE, "bytes that kernels read and write in memory to train on one sample."),
    "launches": (WHOLE, "kernels launched per mini-batch."),
    "parameters": (WHOLE, "trained weights."),
    "sample-bytes": (WHOLE, "bytes of one sample as it is copied to the GPU."),
    "file-bytes": (NOT_NEGATIVE, "bytes of one sample's file; 0 if all samples are in memory."),
    "pixels": (NOT_NEGATIVE, "pixels decoded and transformed per sample."),
    "samples": (WHOLE, "samples per epoch."),
}


_IDLE = option(
    "--idle-w W",
    "Power of the board while it idles from the end of the work until the limit of its time;"
    " counted as energy.",
    POSITIVE,
)
_REST = option(
    "--rest-w W",
    "Power of what the sensor does not see, such as the rest of the board; counted as energy.",
    POSITIVE,
)
_PRECISION = option(
    "--precision",
    "Arithmetic; fp16 and bf16 as autocast does it.",
    click.Choice(["fp32", "tf32", "fp16", "bf16"]),
    default="fp32",
)


def _total_options(command: Any) -> Any:
    """Add an option for each of `TOTALS` to a command."""
    for name, (kind, text) in reversed(TOTALS.items()):
        command = option(f"--{name} N", f"Instead of --model: {text}", kind)(command)
    return command


@command("Simulate one epoch: its time, energy and bottleneck.", "what-if")
@option(
    "--device NAME",
    "Simulated board: agx, nx, nano or orin, or a unit of one, such as agx-d1.",
    DEVICE,
    required=True,
)
@option("--model NAME", NETWORK, MODEL)
@option("--run RUN", "Instead of --model: a run of EpochMonitor whose network was counted.", RUN)
@option("--storage", "Storage medium of the data set.", click.Choice(["ssd", "hdd", "sd", "emmc"]))
@option("--workers N", "Number of loader workers.", COUNT_OR_0, into="num_workers")
@option("--batch-size N", "Samples per mini-batch.", COUNT)
@option(
    "--power-mode MODE",
    "A power mode of the device file, or CORES,CPU,GPU,MEMORY with clocks in MHz.",
)
@option("--dvfs", "on: governors choose the clocks.", click.Choice(["on", "off"]))
@option("--scale X", "Size of the data set relative to the original.", POSITIVE)
@option("--cold", "Start with an empty page cache.")
@option(
    "--max-epoch-s S",
    "Limit of epoch time, in seconds, for the power mode of least energy.",
    POSITIVE,
    into="deadline_s",
)
@_IDLE
@_REST
@_total_options
def what_if(device: str, model: str | None, run: str | None, **options: Any) -> None:
    """Simulate one training epoch on a Jetson board and print its time, its energy, what limits it,
    and how far the answer can be trusted (docs/how-to/what-if.md).

    Options that are left out take the default of the SIGMETRICS 2023 paper, which the answer shows
    for comparison. A network that config/workloads.yaml does not have can be described by its
    totals instead of --model; then all eight are required. With --run, it is
    your own loop, beside what was measured of it here; its script calls
    `monitor.count(model, minibatch)`.

    Examples:
    # the papers' default configuration
    epochwatt what-if --device agx --model mobilenet
    # another storage medium, more loader workers
    epochwatt what-if --device agx --model mobilenet --storage hdd --workers 8
    # a power mode in numbers
    epochwatt what-if --device orin --model resnet --power-mode 4,1200,600,2133
    # which listed mode costs least energy by a deadline, idling until then
    epochwatt what-if --device agx --model mobilenet --max-epoch-s 600 --idle-w 8
    # a loop of your own
    epochwatt what-if --device orin --run my-run
    """
    from epochwatt.sweeps.other_power import OtherPower
    from epochwatt.twin.what_if import what_if_lines

    totals = {name: options.pop(name.replace("-", "_")) for name in TOTALS}
    powers = {name: options.pop(name) for name in OtherPower._fields}
    if powers["idle_w"] and not powers["deadline_s"]:
        raise click.UsageError("--idle-w counts until a deadline: add --max-epoch-s")
    settings = without_none(options)
    if run is not None and (model or without_none(totals) or options["storage"] or options["cold"]):
        raise click.UsageError("--run goes with none of --model, its totals, --storage and --cold")
    other = OtherPower(**without_none(powers))
    say(what_if_lines(device, model, without_none(totals), settings, run, other))


@command("Find the best power mode of a board within limits.")
@option(
    "--backend",
    f"Whose runs the models are fitted to: measured on a Jetson, on a fake board, or simulated"
    f" ({TWIN}).",
    click.Choice(["jetson", "fake", TWIN]),
    required=True,
)
@option("--device NAME", "Board, or a unit of one, such as agx-d1.", DEVICE, required=True)
@option("--model NAME", NETWORK, MODEL, required=True)
@option(
    "--objective",
    "Quantity to minimise; edp is energy x time. Default: time, or energy if --max-epoch-s is the"
    " only limit.",
    click.Choice(["time", "energy", "edp"]),
)
@option("--max-power-w W", "Limit of mean power, in watts.", POSITIVE, into="power_w")
@option("--max-epoch-s S", "Limit of epoch time, in seconds.", POSITIVE, into="epoch_s")
@option(
    "--max-energy-wh WH", "Limit of energy per epoch, in watt-hours.", POSITIVE, into="energy_wh"
)
@option(
    "--max-risk P",
    "Highest probability that the mean power of training breaks --max-power-w, such as 0.05."
    " Default: 0.1, or the safest mode where none is as safe. A mode that is just expected to keep"
    " it breaks it about half of the time.",
    RISK,
)
@_IDLE
@_REST
@option("--storage NAME", "Storage medium of the profiled runs.")
@option("--workers N", "Loader workers of the profiled runs.", COUNT_OR_0)
@option("--batch-size N", "Mini-batch size of the profiled runs.", COUNT)
@option(
    "--method NAME",
    "Prediction method (docs/explanation/predictions.md). Default: stacked.",
)
@option(
    "--verify",
    "Also show the one run that would confirm the answer, or its result if it was made.",
)
@option("--figure", "Also draw the Pareto front.")
@option("--nvpmodel", "Also print the nvpmodel configuration.")
def recommend(verify: bool, figure: bool, nvpmodel: bool, **options: Any) -> None:
    """Find the power mode of a board that minimises time or energy within limits, by models fitted
    to runs in a few power modes (docs/how-to/recommend-a-power-mode.md). It also writes the modes
    of the Pareto front and, where the board is known, an nvpmodel configuration to
    results/recommend/.

    If no model exists yet, it says which power modes to profile, and how.

    Examples:
    # the fastest power mode that draws at most 20 W, by simulated runs
    epochwatt recommend --backend twin --device agx-d1 --model mobilenet --max-power-w 20
    # the most economical one that trains an epoch in 400 s, by measured runs
    epochwatt recommend --backend jetson --device orin --model resnet --max-epoch-s 400
        --objective energy
    """
    from epochwatt.prediction.recommend import text
    from epochwatt.prediction.recommend.command import Request, advise

    budgets = without_none(
        {name: options.pop(name) for name in ("power_w", "epoch_s", "energy_wh")}
    )
    advice = advise(Request(budgets=budgets, **without_none(options)))
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
        from epochwatt.prediction.recommend.runs import verify_lines

        say(verify_lines(advice))
    if nvpmodel:
        say(text.block_lines(advice))


@command("Run power modes of a board; answer with a measured one.")
@option("--device NAME", "Board, or a unit of one, such as agx-d1; host: this machine.", DEVICE)
@option("--model NAME", NETWORK, MODEL)
@option(
    "--max-minutes T",
    "Limit of board time: switching, settling and warming up included.",
    POSITIVE,
)
@option("--max-runs N", "Limit of modes that are run, those that are run again included.", COUNT)
@option("--max-power-w W", "Limit of mean power, in watts.", POSITIVE)
@option(
    "--max-time-s S",
    "Limit of the time of one mini-batch, or of the work of a table: the deadline of a job over its"
    " mini-batches.",
    POSITIVE,
)
@option(
    "--max-risk P",
    "Highest probability that the next measurement of the answer breaks --max-power-w. Default:"
    " 0.1; 0.5 takes what was measured as it is.",
    RISK,
)
@option(
    "--objective",
    "Quantity to minimise. Default: time, or energy if --max-time-s is the only limit.",
    click.Choice(["time", "energy"]),
)
@_IDLE
@_REST
@option(
    "--backend",
    f"Where modes are run; {TWIN}: simulated. Default: on the device.",
    click.Choice(["jetson", "host", TWIN]),
)
@option(
    "--replay SWEEP",
    "Run nothing: a table of modes plays the board (`epochwatt sweeps` lists them).",
    SWEEP,
)
@option("--storage NAME", "Storage medium of the data set.")
@option("--workers N", "Loader workers. Default: 4.", COUNT_OR_0)
@option("--batch-size N", "Mini-batch size. Default: 16.", COUNT)
@option(
    "--method NAME",
    "Prediction method that chooses the modes. Default: stacked.",
)
@click.pass_context
def profile(context: click.Context, device: str | None, model: str | None, **options: Any) -> int:
    """Find a board's best power mode by running modes (docs/how-to/profile-a-board.md).

    Each mode trains some forty mini-batches. The next one is the mode that promises most, by what
    was measured so far. It ends when another mode costs more than it can save, or when the time is
    over. The answer is a mode that was measured, and measured again until it is clear that it keeps
    the limit. Ctrl-C keeps what is measured; the same command
    goes on from there.

    Examples:
    # on the board: its fastest mode within 30 W, one in half an hour
    epochwatt profile --device orin --model resnet --max-power-w 30 --max-minutes 30
    # the same on a simulated board, in seconds
    epochwatt profile --backend twin --device orin --model resnet --max-power-w 30 --max-minutes 30
    # a table of 736 modes that others measured plays the board
    epochwatt profile --replay translucence-tx1-5000 --max-power-w 8 --max-minutes 15
    # the mode of least energy in ten runs, 5 W of the rest of the board counted
    epochwatt profile --device orin --model resnet --objective energy --rest-w 5 --max-runs 10
    # numbers of threads on this machine
    epochwatt profile --device host --model lenet --max-minutes 5
    """
    from epochwatt.prediction.profile.command import Request, profile_of
    from epochwatt.prediction.profile.search import search
    from epochwatt.prediction.profile.text import answer_lines, asked_lines, mode_line

    request = Request(device, model, **without_none(options))
    profile = profile_of(request, say=lambda line: say([line], err=True))
    typed = f".venv/bin/epochwatt {shlex.join(['profile', *context.meta['typed']])}"
    say(asked_lines(profile))
    try:
        search(profile, say=lambda profile, ran: say([mode_line(profile, ran)]))
    except KeyboardInterrupt:
        say(answer_lines(profile, typed))
        return 130
    except EpochwattError:
        if profile.ran:
            say(answer_lines(profile, typed))
        raise
    say(answer_lines(profile, typed))
    return 0 if profile.best is not None else 1


@command("Plan training beside inference within budgets.")
@option("--train NAME", "Network that is trained.", MODEL)
@option("--infer NAME", "Network that serves requests.", MODEL)
@option("--rate N", "Requests that arrive in a second.", POSITIVE, into="rate_per_s")
@option("--max-latency-ms MS", "Limit from arrival to answer.", POSITIVE)
@option("--max-power-w W", "Limit of the board's power.", POSITIVE, required=True)
@option(
    "--power-rule",
    "highest: of the jobs, while they run; mean: over the time in which something runs.",
    click.Choice(["highest", "mean"]),
    default="highest",
)
@option(
    "--device NAME",
    "Simulated board. Default: orin. With --tables: the one of several to take.",
    DEVICE,
)
@option(
    "--solver",
    "gain: one choice after the other, where a roofline expects most, until little is left to "
    "gain; gmd: 15, one after the other; verified: 10 random modes, a prediction and up to 5 more; "
    "exhaustive: all.",
    click.Choice(["gain", "gmd", "verified", "exhaustive"]),
    default="gain",
)
@option(
    "--tables TABLE",
    "Sweep or file of modes to take times and powers from, in place of a simulated board.",
)
def schedule(**options: Any) -> int:
    """Choose power mode, mini-batch size and share of training for a board that trains one network
    while it serves requests to another (docs/how-to/schedule.md). Most training within the budgets
    wins; without training, least latency. Exit status 1: no plan keeps them.

    Examples:
    # both on a simulated AGX Orin
    epochwatt schedule --train mobilenet --infer resnet50 --rate 30 --max-latency-ms 300
        --max-power-w 30
    # training alone
    epochwatt schedule --train mobilenet --max-power-w 20
    # in modes that you measured
    epochwatt schedule --train mobilenet --infer resnet50 --rate 30 --max-latency-ms 300
        --max-power-w 30 --tables modes.csv
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more cost twice the CPU time
    from epochwatt.schedule.question import Request, answer_lines, find_answer

    result = find_answer(Request(**options))
    say(answer_lines(result))
    return 0 if result.plan is not None else 1


@command("Plan a round of federated training that ends together.")
@click.argument("fleet", metavar="FLEET", type=PATH)
@option(
    "--objective",
    "energy: least, at no later end; time: earliest end within --max-energy-wh; energy_per_sample:"
    " least, where boards may choose how much they train.",
    click.Choice(["energy", "time", "energy_per_sample"]),
    default="energy",
)
@option(
    "--deadline-s S",
    "The round ends within S seconds. Default of the objective energy: as soon as the slowest board"
    " can.",
    POSITIVE,
)
@option("--max-energy-wh WH", "Limit of the energy of all boards in a round.", POSITIVE)
@option(
    "--max-risk P",
    "Highest probability that some board ends later, such as 0.05; spread_pct of a board says how"
    " much its fits vary.",
    RISK,
)
@option("--csv FILE", "Also write a row per board to FILE.", OUTPUT_FILE, into="path")
def rounds(path: Any, **options: Any) -> None:
    """Choose the power mode of each board of FLEET, a YAML file, so that a round of federated
    training ends together: fast boards run slower, and nobody waits at full power
    (docs/how-to/federated-round.md).

    Examples:
    # least energy, no later than the slowest board can
    epochwatt rounds fleet.yaml
    # within a minute, and late in at most one round of twenty
    epochwatt rounds fleet.yaml --deadline-s 60 --max-risk 0.05
    """
    from epochwatt.rounds.answer import Request, answer_lines, find_answer, write_table

    result = find_answer(Request(**options))
    say(answer_lines(result))
    if path is not None:
        write_table(result, path)


@command("Judge the prediction methods on sweeps of power modes.")
@click.argument("sweeps", metavar="SWEEP...", nargs=-1, required=True)
@option(
    "--method NAME",
    "Prediction method; give it again for more. Default: all that need no simulation.",
    into="methods",
    multiple=True,
)
@option(
    "--reference SWEEP",
    "What methods that transfer learn all modes of (powertrain). Default: another workload of the "
    "same device, of the sweeps that are judged.",
)
@option("--draws N", "Random sets of profiled modes. Default: 10.", COUNT)
@option(
    "--csv FILE",
    "Also write all numbers, with their intervals, to FILE.",
    OUTPUT_FILE,
    into="path",
)
def score(sweeps: tuple[str, ...], methods: tuple[str, ...], **options: Any) -> None:
    """Judge all prediction methods on sweeps: public ones by name, packages or files of mode tables
    (docs/how-to/score-a-sweep.md). Each method learns from 4, 10, 25, 50 and 100 modes and predicts
    all others.

    It prints errors of time, power and energy, what intervals hold, what the fastest mode within a
    power budget costs and how often it breaks the budget.

    Examples:
    # a Jetson TX1 in 736 modes, measured by others
    epochwatt score translucence-tx1-5000
    # two methods on a table of your own
    epochwatt score mine.csv --method physical --method gaussian_process
    # PowerTrain, from 416 modes of another workload on the same board
    epochwatt score translucence-tx2-20000 --method powertrain --reference translucence-tx2-5000
    """
    from epochwatt.open_data.read import find_tables
    from epochwatt.prediction.evaluation.score_sweeps import judged_methods, score_tables
    from epochwatt.prediction.evaluation.sweep_scores import as_text, text_lines, write_scores

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


@command("Count operations, bytes and launches of a network.")
@option(
    "--model NAME",
    "Network, a row of config/workloads.yaml; or module.function that builds one.",
    MODEL,
    required=True,
)
@option("--like NAME", "With a function: the network of this package whose input it takes.")
@option("--batch-size N", "Samples per mini-batch.", COUNT, default=16)
@option("--task", "infer: forward passes alone.", click.Choice(["train", "infer"]), default="train")
@_PRECISION
def count(model: str, like: str | None, batch_size: int, task: str, precision: str) -> None:
    """Count what one mini-batch of a network asks of a GPU: floating-point operations, bytes to and
    from memory, and kernel launches, by class of operator (docs/reference/counts.md). It needs no
    GPU, and nothing is measured.

    Examples:
    # training on a mini-batch of 16
    epochwatt count --model resnet50
    # inference in half precision
    epochwatt count --model bert --task infer --precision fp16 --batch-size 1
    # a network from a library
    epochwatt count --model torchvision.models.squeezenet1_1 --like resnet50
    """
    from epochwatt.counting.count_lines import count_lines  # imports torch

    say(count_lines(model, like, batch_size, task, precision))


@command("Say whether a training fits into memory, how long it takes.")
@option(
    "--model NAME",
    "Network, a row of config/workloads.yaml; or module:function that builds one; or a folder or "
    "JSON file with a configuration of transformers.",
    MODEL,
    required=True,
)
@option("--like NAME", "With a function: the network of this package whose input it takes.")
@BOARD_AT_HAND
@option("--batch-size N", "Samples per mini-batch.", COUNT, default=16)
@_PRECISION
@option(
    "--optimiser",
    "Default: that of the network.",
    click.Choice(["sgd", "adam", "adamw"]),
)
@option("--checkpointing", "Compute activations of blocks again in place of keeping them.")
@option("--accumulate N", "Mini-batches whose gradients make one step.", COUNT, default=1)
@option("--task", "infer: forward passes alone.", click.Choice(["train", "infer"]), default="train")
@option("--workers N", "Loader workers.", COUNT_OR_0, into="num_workers", default=4)
@option(
    "--prefetch N",
    "Mini-batches that each of them holds.",
    COUNT,
    into="prefetch_factor",
    default=2,
)
@option("--length N", "Of transformers: tokens of a sample.", COUNT, default=512)
@option("--lora RANK", "Of transformers: train adapters of this rank alone.", COUNT)
@option(
    "--weights TYPE",
    "Of transformers: how weights are kept; nf4: in four bits, frozen, beside adapters (QLoRA).",
    click.Choice(["fp32", "bf16", "nf4"]),
    default="fp32",
)
@option("--samples N", "Samples of an epoch. Default: those of the network's data set.", COUNT)
@option("--memory-gib X", "Memory that training may take. Default: that of the device.", POSITIVE)
@option("--json FILE", "Also write the answer into a file.", OUTPUT_FILE, into="path")
def fit(path: Any, **options: Any) -> int:
    """Say whether a training fits into the memory of a device, the largest batch size that does,
    what to change first, and what time and energy an epoch takes where the device is simulated
    (docs/how-to/fit.md). The network is not run, and needs no weights. Exit status 1: it does not
    fit with the margin.

    Examples:
    # on this machine
    epochwatt fit --model resnet50 --batch-size 64
    # on a board
    epochwatt fit --model mobilenet --device orin
    # a network from a library
    epochwatt fit --model torchvision.models:squeezenet1_1 --like resnet50 --device nano
    # a language model from its configuration
    epochwatt fit --model config.json --device orin.nano --batch-size 1 --length 1024
    # the same with QLoRA
    epochwatt fit --model config.json --device orin.nano --batch-size 1 --lora 16 --weights nf4
    """
    click.echo(f"counting the tensors of {options['model']} (about ten seconds)", err=True)
    from epochwatt.memory.fit import Request, answer  # imports torch
    from epochwatt.memory.fit_lines import as_json, fit_lines

    found = answer(Request(**without_none(options)))
    say(fit_lines(found))
    if path is not None:
        path.write_text(json.dumps(as_json(found), indent=1) + "\n", "utf-8")
    return 0 if found.verdict(found.now.need) == "fits" else 1
