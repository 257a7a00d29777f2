"""`epochwatt what-if`: simulate one epoch of a configuration, in closed form, and print the answer.

Settings that are left out take the default of SIGMETRICS 2023, section 4.4. The epoch is one of the
long run, or one that begins with an empty page cache.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS, Fact
from epochwatt.study.config import Device
from epochwatt.study.devices import Devices
from epochwatt.sweeps.other_power import NOTHING_ELSE, PACED, OtherPower
from epochwatt.text import aligned, counted
from epochwatt.twin import nearest, resources
from epochwatt.twin.boards import Clocks, number
from epochwatt.twin.epoch import FLOAT_BYTES, Epoch, Setting, cached_share, epoch
from epochwatt.twin.network import COUNTS, Network, network_of
from epochwatt.twin.parameters import Parameters
from epochwatt.twin.power import check_clocks
from epochwatt.twin.power_modes import CONFIG, load_twin_with_modes
from epochwatt.twin.predicted import Question, predict, questions
from epochwatt.twin.refits import load_refits
from epochwatt.twin.twin import Twin

if TYPE_CHECKING:
    from epochwatt.twin.own_loop import OwnLoop

LONGEST_S = 365.25 * 86400.0  # of an epoch; what takes longer is a mistake
FAR = 10.0  # times the default: no longer given in per cent
OWN_RESULTS = (  # what is shown of somebody's own loop
    *("epoch s", "  wait s", "  hand-over s", "  copy s", "  compute s"),
    *("  overhead s", "energy Wh", "mean power W", "GPU utilisation %", "CPU utilisation %"),
)
SHOWN = 5  # at most, of assumed parameters and of published numbers


class Side(NamedTuple):
    """A configuration and its simulated epoch."""

    question: Question
    setting: Setting
    epoch: Epoch


@dataclass(frozen=True)
class Answer:
    """The simulated epochs of a question and of the default, and what they rest on."""

    request: Side  # the configuration in question and the paper's default
    default: Side
    # each setting that differs, by its field of `Question`: the default with this change alone, and
    # what was asked without it
    changes: Mapping[str, tuple[Side, Side]]
    listed: Sequence[Side]  # what was asked in each listed power mode
    other: OtherPower  # that counts as energy besides
    twin: Twin  # all boards, with the clocks of their modes
    source: str  # where the network's counts come from
    out_of_memory: bool  # the network did not fit on this board in the papers
    root: Path  # the checkout, for the published numbers


def what_if_lines(
    device: str,
    model: str | None,
    totals: Mapping[str, float],
    settings: Mapping[str, Any],
    run: str | None = None,
    other: OtherPower = NOTHING_ELSE,
    root: Path = Path(),
) -> list[str]:
    """Answer a what-if question: simulate one epoch and return the lines for the terminal.

    Parameters
    ----------
    device : a board, or a unit of one: `agx`, `agx-d1`; all units are simulated alike
    model : a row of config/workloads.yaml; None: a network described by its totals
    totals : values of `network.TOTALS`; empty where there is a model
    settings : fields of `Question` that are not to be the default
    run : of somebody's own loop, in place of a network (`roofline.find_run`); its settings are the
        default
    other : what draws power besides, for the power mode of least energy

    Raises EpochwattError: a name that does not exist, or a configuration that cannot run.
    """
    counts = sorted((root / COUNTS).glob("*.json"))
    twin = load_twin_with_modes(map(str, counts), root)
    name, dash, unit = device.partition("-")
    if name not in twin.boards:
        raise EpochwattError(f"unknown --device {device!r}", allowed=twin.boards)
    file = Devices(root).get(name, "--device")
    if dash and unit not in file.instances:
        allowed = [name, *(f"{name}-{unit}" for unit in file.instances)]
        raise EpochwattError(f"unknown --device {device!r}", allowed=allowed)
    loop = None
    if run is not None:
        from epochwatt.twin.own_loop import own_loop  # imports what only records need

        loop = own_loop(run, twin.boards[name], twin.parameters)
    network = network_of(model, totals, twin, root) if loop is None else loop.network
    usual = usual_settings(name, file)
    if loop is not None:
        usual |= {"num_workers": loop.seen.num_workers, "batch_size": int(loop.seen.batch_size)}
    keys = ("storage", "num_workers", "batch_size", "power_mode", "dvfs")
    default = Question(name, network.work.model, *(usual[key] for key in keys))
    question = default._replace(**settings)
    mode, clocks = mode_of(question.power_mode, twin, name)
    question = question._replace(power_mode=mode)
    twin = replace(twin, modes={**twin.modes, name: {**twin.modes[name], mode: clocks}})
    with np.errstate(over="ignore"):  # an endless epoch is refused below
        request = simulate(question, twin, network)
        usually = simulate(default, twin, network)
        changes: dict[str, tuple[Side, Side]] = {}
        for key in Question._fields:
            asked, usual_value = getattr(question, key), getattr(default, key)
            if asked != usual_value:
                alone = simulate(default._replace(**{key: asked}), twin, network)
                without = simulate(question._replace(**{key: usual_value}), twin, network)
                changes[key] = (alone, without)
        listed = [
            simulate(question._replace(power_mode=m), twin, network) for m in twin.modes[name]
        ]
    _check_sizes(request, twin.parameters)
    if loop is not None:
        free = simulate(question, twin, loop.without_loading)
        answer = Answer(request, request, {}, listed, other, twin, network.source, False, root)
        return _own_loop_lines(answer, free, loop)
    too_large = model in file.out_of_memory
    return answer_lines(
        Answer(request, usually, changes, listed, other, twin, network.source, too_large, root)
    )


def usual_settings(name: str, file: Device) -> dict[str, Any]:
    """Return the paper's default of a board, else the first values of its device file."""
    first = {"storage": next(iter(file.storage)), "power_mode": next(iter(file.power_modes))}
    return {**first, **DEFAULTS, **DEVICE_DEFAULTS.get(name, {})}


def mode_of(mode: str, twin: Twin, device: str) -> tuple[str, Clocks]:
    """Return label and clocks of a power mode; one without a label is called by its numbers.

    `mode`: a label, or cores, CPU, GPU and memory clock in MHz, separated by commas

    Raises EpochwattError: neither of these, or clocks that the board does not have.
    """
    board, modes = twin.boards[device], twin.modes[device]
    if mode in modes:
        return mode, modes[mode]
    try:
        cores, *clocks_mhz = mode.split(",")
        clocks = Clocks(int(cores), *map(float, clocks_mhz))
    except (ValueError, TypeError):
        example = ",".join(f"{n:g}" for n in next(iter(modes.values())))
        raise EpochwattError(
            f"unknown --power-mode {mode!r}",
            allowed=[*modes, f"or CORES,CPU,GPU,MEMORY with clocks in MHz, such as {example}"],
        ) from None
    try:
        check_clocks(board, clocks)
    except EpochwattError as error:
        limits = ((1, board.cores), board.cpu_mhz, board.gpu_mhz, board.emc_mhz)
        possible = (min(max(low, n), high) for n, (low, high) in zip(clocks, limits, strict=True))
        error.do = f"try the nearest: {','.join(f'{n:g}' for n in possible)}"
        raise
    return next((label for label, listed in modes.items() if listed == clocks), mode), clocks


def simulate(q: Question, twin: Twin, network: Network) -> Side:
    """Simulate a configuration; return it with its epoch."""
    clocks = Clocks(*(float(n) for n in twin.clocks(q.device, q.power_mode)))
    parts = (twin.boards[q.device], network.work, network.samples)
    setting = q.setting(parts, clocks, q.num_workers)
    return Side(q, setting, epoch(setting, twin.parameters))


def _check_sizes(side: Side, p: Parameters) -> None:
    """Raise EpochwattError: a batch beyond the epoch, too little memory, or an endless epoch."""
    q, setting, e2e_s = side.question, side.setting, number(side.epoch.e2e_s)
    if q.batch_size > setting.n_samples:
        raise EpochwattError(
            f"--batch-size {q.batch_size} is more than the samples of an epoch",
            allowed=f"1 to {setting.n_samples}",
        )
    work, board = setting.work, setting.board
    activations = work.elements(setting.n_first)[work.phase == "forward"].sum()
    floats = 3 * work.parameters + float(activations)  # weights, gradients, momentum
    needed_mib = p["worker_mib"] * number(setting.num_workers) + FLOAT_BYTES * floats / 2.0**20
    if needed_mib > board.ram_mib:
        raise EpochwattError(
            f"{q.num_workers} workers and {q.model} with batch size {q.batch_size} need "
            f"{needed_mib:.0f} MiB, and {board.title} has {board.ram_mib:.0f} MiB",
            do="choose fewer --workers, a smaller --batch-size or a smaller network",
        )
    if e2e_s > LONGEST_S:
        raise EpochwattError(
            f"one epoch would take {e2e_s / LONGEST_S:.3g} years",
            allowed="up to one year",
            do="check the totals of the network and --scale",
        )


def _own_loop_lines(answer: Answer, free: Side, loop: "OwnLoop") -> list[str]:
    """Return the answer on a user's own loop, beside what was measured of it.

    `free`: the same with samples that cost the loader next to nothing
    """
    published, seen = nearest.published_questions(answer.root), loop.seen
    setting = answer.request.setting
    measured = {
        "loader workers": str(seen.num_workers),
        "batch size": f"{seen.batch_size:g}",
        "epoch s": f"{seen.e2e_s:.4g}",
        "  wait s": f"{seen.wait_s:.4g}",
        "  copy s": f"{seen.copy_s:.4g}" if loop.has_copy else "in compute",
        "  compute s": f"{seen.compute_s:.4g}",
        "  overhead s": f"{seen.overhead_s:.4g}",
        "energy Wh": "" if loop.energy_wh is None else f"{loop.energy_wh:.4g}",
    }
    rows = [("", "simulated", "without loading", f"measured on {loop.machine}")]
    settings = _settings(answer.request.question, answer.twin)
    for name in ("storage", "page cache"):
        settings.pop(name)
    rows += [(name, value, "", measured.get(name, "")) for name, value in settings.items()]
    sides = [_results(side, answer.twin.parameters) for side in (answer.request, free)]
    for name in OWN_RESULTS:
        now, unloaded = (f"{side[name]:.4g}" for side in sides)
        rows.append((name, now, unloaded, measured.get(name, "")))
    return [
        f"SIMULATED, not measured: one epoch of the run {loop.run} on {setting.board.title}",
        *(f"WARNING: {text}" for text in _warnings(answer, published)),
        f"{answer.source}; {counted(setting.n_minibatches, 'mini-batches')}",
        "",
        *aligned(rows),
        "",
        "not known of this loop:",
        *(f"  {line}" for line in loop.unknown),
        "",
        *_bottleneck_lines(answer.request, answer.twin.parameters),
        "",
        *_uncertainty_lines(answer),
        "",
        *_evidence_lines(answer, published),
        *_assumed_lines(answer),
    ]


def answer_lines(answer: Answer) -> list[str]:
    """Return the whole answer on a configuration as lines for the terminal."""
    published = nearest.published_questions(answer.root)
    q, setting = answer.request.question, answer.request.setting
    return [
        f"SIMULATED, not measured: one epoch of {q.model} on {setting.board.title}",
        *(f"WARNING: {text}" for text in _warnings(answer, published)),
        f"{answer.source}; {counted(setting.n_minibatches, 'mini-batches')}",
        "",
        *_comparison(answer),
        "",
        *_least_energy(answer),
        "",
        *_one_by_one(answer),
        *_bottleneck_lines(answer.request, answer.twin.parameters),
        "",
        *_uncertainty_lines(answer),
        "",
        *_evidence_lines(answer, published),
        *_assumed_lines(answer),
    ]


def _warnings(answer: Answer, published: nearest.Published) -> list[str]:
    """Return warnings: what makes the whole answer doubtful."""
    q, warnings = answer.request.question, []
    if answer.out_of_memory:
        warnings.append(f"{q.model} ran out of memory on this board in the papers")
    if not _is_calibrated(answer.twin.parameters):
        warnings.append(
            "config/twin/parameters.yaml was never calibrated; all fitted parameters have their "
            "assumed values (epochwatt calibrate-twin)"
        )
    if nearest.only_assumed(q.device, published, answer.root):
        warnings.append(f"no number of {q.device} was fitted: data sheet and assumptions only")
    models = sorted({p.model for p in published if p.device == q.device})
    if q.model not in models:
        there = ", ".join(models) or "no network"
        return [*warnings, f"nothing is published of {q.model} on {q.device} (only of {there})"]
    missing = nearest.unpublished(q, published)
    return warnings + [f"nothing is published anywhere with {text}" for text in missing]


def _is_calibrated(p: Parameters) -> bool:
    return any(p.described[name].value != p.described[name].prior for name in p.fitted)


def _settings(q: Question, twin: Twin) -> dict[str, str]:
    """Return the settings of a configuration by title."""
    cores, cpu, gpu, emc = twin.clocks(q.device, q.power_mode)
    return {
        "storage": q.storage,
        "loader workers": str(q.num_workers),
        "batch size": str(q.batch_size),
        "power mode": q.power_mode if "," not in q.power_mode else "-",
        "CPU cores": f"{cores:g}",
        "CPU MHz": f"{cpu:g}",
        "GPU MHz": f"{gpu:g}",
        "memory MHz": f"{emc:g}",
        "DVFS": q.dvfs,
        "page cache": "empty" if q.cold else "kept",
        "data set scale": f"{q.scale:g}",
    }


def _results(side: Side, p: Parameters) -> dict[str, float]:
    """Return the numbers of one epoch by name and unit; NaN: a heading."""
    setting, e = side.setting, side.epoch
    n, hours = setting.n_minibatches, number(e.e2e_s) / 3600.0
    handover_s, copy_s = n * number(e.stages.handover_s), n * number(e.stages.copy_s)
    bandwidth = 1e6 * number(e.clocks.emc_mhz) * setting.board.emc_bytes_per_clock
    cached = cached_share(setting, p) if setting.samples.file_bytes else 1.0
    watts = {
        "CPU": number(e.parts.cpu_w),
        "GPU": number(e.parts.gpu_w),
        "memory": number(e.parts.memory_w),
        "rest of the module": number(e.parts.soc_w + e.parts.io_w),
    }
    return {
        "epoch s": number(e.e2e_s),
        "  wait s": max(number(e.stall_s) - handover_s - copy_s, 0.0),
        "  hand-over s": handover_s,
        "  copy s": copy_s,
        "  compute s": number(e.compute_s),
        "  overhead s": number(e.overhead_s),
        "during these, in parallel": math.nan,
        "  files fetched, sum of workers s": number(e.fetch_s),
        "  decoded and transformed, sum s": number(e.preprocess_s),
        "  kernels launched s": n * number(e.work.launch_s),
        "  kernels executed s": number(e.gpu_busy_s),
        "energy Wh": number(e.energy_wh),
        **{f"  {part} Wh": w * hours for part, w in watts.items()},
        "mean power W": number(e.power_w),
        **{f"  {part} W": w for part, w in watts.items()},
        "GPU utilisation %": 100.0 * number(e.gpu_busy_s / e.e2e_s),
        "CPU utilisation %": 100.0 * number(e.cpu_busy_s / e.e2e_s / e.clocks.cores),
        "memory bandwidth used %": 100.0 * number(e.moved_bytes / e.e2e_s) / bandwidth,
        "samples read from the medium %": 100.0 * number(e.read_share),
        "data set that the page cache holds %": 100.0 * number(cached),
    }


def _comparison(answer: Answer) -> list[str]:
    """Return settings and results beside those of the default."""
    sides = (answer.request, answer.default)
    settings, default = (_settings(side.question, answer.twin) for side in sides)
    rows = [("", "this", "default", "change")]
    rows += [(name, value, default[name], "") for name, value in settings.items()]
    now, usual = (_results(side, answer.twin.parameters) for side in sides)
    for name, value in now.items():
        if math.isnan(value):
            rows.append((name, "", "", ""))
            continue
        before = usual[name]
        if value == before or (not before and not name.endswith("%")):
            change = "-"
        elif name.endswith("%"):
            change = f"{_signed(value - before)} points"
        elif value > FAR * before:
            change = f"{value / before:.0f} times"
        else:
            change = f"{_signed(100.0 * (value / before - 1.0))} %"
        rows.append((name, f"{value:.4g}", f"{before:.4g}", change))
    return aligned(rows)


def _least_energy(answer: Answer) -> list[str]:
    """Return one line: the listed power mode of least energy, against the one that was asked for.

    Only modes that end by the deadline count, if there is one. Energy has `answer.other` in it.
    Where the board idles from the end of the epoch to the deadline, a fast mode that idles long
    ("racing to idle") may cost less than the best "paced" one, which just meets the deadline; the
    line says by how much.
    """
    other, now = answer.other, answer.request
    deadline_s = math.inf if other.deadline_s is None else other.deadline_s

    def time_s(side: Side) -> float:
        return number(side.epoch.e2e_s)

    def energy_j(side: Side) -> float:
        mean_w = 3600 * number(side.epoch.energy_wh) / time_s(side)
        return other.energy_j(time_s(side), mean_w)

    in_time = [side for side in answer.listed if time_s(side) <= deadline_s]
    title = "least energy of the board's listed power modes"
    if not in_time:
        fastest = min(answer.listed, key=time_s)
        mode = fastest.question.power_mode
        return [f"{title}: none within {deadline_s:g} s; {mode} takes {time_s(fastest):.4g} s"]
    least = min(in_time, key=energy_j)
    words = f"{title}: {least.question.power_mode}"
    if least.question.power_mode == now.question.power_mode:
        words += ", this one"
    else:
        ratios = energy_j(least) / energy_j(now), time_s(least) / time_s(now)
        energy, time = (_signed(100.0 * (ratio - 1.0)) for ratio in ratios)
        words += f", energy {energy} %, time {time} %"
    paced_j = [energy_j(side) for side in in_time if time_s(side) > PACED * deadline_s]
    if other.idle_w and time_s(least) <= PACED * deadline_s:
        words += "; racing to idle: it ends early"
        if paced_j:
            more = 100.0 * (min(paced_j) / energy_j(least) - 1.0)
            words += f", and one that just meets the deadline costs {more:.1f} % more"
    return [words]


def _signed(value: float) -> str:
    """Return a change to one digit; what rounds to nothing has no sign."""
    text = f"{value:+.1f}"
    return text if float(text) else text[1:]


def _one_by_one(answer: Answer) -> list[str]:
    """Return a table of what each of several changed settings does alone; empty: fewer than two."""
    if len(answer.changes) < 2:
        return []
    rows = [["one by one", "epoch s: alone", "without it", "energy Wh: alone", "without it"]]
    for name, sides in answer.changes.items():
        times = [f"{number(side.epoch.e2e_s):.4g}" for side in sides]
        energies = [f"{number(side.epoch.energy_wh):.4g}" for side in sides]
        value = nearest.word(getattr(answer.request.question, name))
        rows.append([f"{nearest.SETTINGS[name]} {value}", *times, *energies])
    return [*aligned(rows), ""]


def _bottleneck_lines(request: Side, p: Parameters) -> list[str]:
    """Return lines on the bottleneck: which resource shortens the epoch most if 10 % faster."""
    shorter = resources.shorter_pct(request.setting, p)
    gains = [
        f"{name} {gain:.1f} %"
        for name, gain in sorted(shorter.items(), key=lambda item: -item[1])
        if gain >= 0.05
    ]
    lines = ["bottleneck: several together; no single resource shortens the epoch if 10 % faster"]
    if gains:
        lines = [
            f"bottleneck: {resources.bottleneck_words(shorter)}",
            f"  if one is 10 % faster, the epoch is shorter by: {', '.join(gains)}",
        ]
    if request.question.dvfs == "on":
        cpu, gpu, emc = map(number, request.epoch.clocks[1:])
        lines.append(
            f"  clocks chosen by the governors: CPU {cpu:.0f}, GPU {gpu:.0f}, memory {emc:.0f} MHz"
        )
    return lines


def _uncertainty_lines(answer: Answer) -> list[str]:
    """Return how far the answer moves if one take-away is left out of the fit."""
    p, setting = answer.twin.parameters, answer.request.setting
    if not _is_calibrated(p):
        return ["uncertainty: no interval without a calibration"]
    try:
        refits = load_refits(answer.root / CONFIG, p)
    except ConfigError as error:
        return [f"uncertainty: no interval; {str(error).splitlines()[0]} (make validate)"]
    epochs = [epoch(setting, {**p, **values}) for values in refits.values()]
    times = [number(e.e2e_s) for e in epochs]
    energies = [number(e.energy_wh) for e in epochs]
    return [
        f"uncertainty: fits that each leave out one of {len(refits) - 1} take-aways give",
        f"  epoch {min(times):.4g} to {max(times):.4g} s, energy {min(energies):.4g} to "
        f"{max(energies):.4g} Wh; errors of the model itself are not included",
    ]


def _evidence_lines(answer: Answer, published: nearest.Published) -> list[str]:
    """Return the published numbers near this configuration, and how far the simulation is off."""
    q, rows, twin = answer.request.question, nearest.validation(answer.root), answer.twin
    lines = [f"published numbers near this configuration ({nearest.MAIN_PAPER})"]
    if any((p.device, p.model) == (q.device, q.model) for p in published):
        missing = nearest.unpublished(q, published, device=q.device, model=q.model)
        lines += [f"  nothing of {q.model} on {q.device} with {text}" for text in missing]
    if near := nearest.nearest(q, published, twin):
        lines += _nearest_lines(near, published[near], answer, rows)
    if not rows:
        return [*lines, f"  held-out errors: no {nearest.VALIDATION} yet (make validate)"]
    medians = [
        f"{name.replace('_', ' and ')} {value:.1f} % (n = {n})"
        for name, (value, n) in nearest.median_errors_pct(rows, q.device).items()
    ]
    error_words = ", ".join(medians) or "no time or energy"
    return [*lines, f"  median held-out error on {q.device}: {error_words}"]


def _nearest_lines(
    near: Question, facts: Sequence[Fact], answer: Answer, rows: Sequence[Mapping[str, str]]
) -> list[str]:
    """Return the numbers of the nearest published configuration, and how it differs."""
    q, twin = answer.request.question, answer.twin
    asked, settings = (_settings(side, twin) for side in (q, near))
    differs = [] if near.model == q.model else [near.model]
    differs += [f"{name} {value}" for name, value in settings.items() if value != asked[name]]
    covered = [
        fact
        for fact in facts
        if all(asked.model in twin.works for side in fact.sides for asked in questions(side))
    ]
    simulated = predict(covered, twin, twin.parameters)
    errors = {}
    for row in rows:
        if row["held_out_error_pct"]:
            unit = "points" if row["judged_as"] == "points" else "%"
            errors[row["published_id"]] = f"{float(row['held_out_error_pct']):.1f} {unit}"
    table = [("published number", "", "paper", "simulated", "held-out error")]
    for fact in facts[:SHOWN]:
        ours = " to ".join(f"{v:.4g}" for v in simulated.get(fact.id, ())) or "-"
        error = errors.get(fact.id, "-")
        table.append((fact.id, nearest.subject(fact), nearest.value(fact), ours, error))
    return [
        f"  nearest: {', '.join(differs) or 'this very configuration'}, in "
        f"{counted(len(facts), 'published numbers')}",
        *(f"  {line}" for line in aligned(table)),
        "  a row of config/published/ each; results/claims.csv judges the paper's conclusions;",
        "  held out: by a fit that did not use the number (docs/explanation/simulated-boards.md)",
    ]


def _assumed_lines(answer: Answer) -> list[str]:
    """Return the assumed parameters that matter most here, and what is assumed of the board."""
    p, board = answer.twin.parameters, answer.request.setting.board
    moved = resources.assumed_in_play(answer.request.setting, p)
    lines = [
        f"  assumed, supported by no published number: {name} = "
        f"{f'{p[name]:g} {p.described[name].unit}'.rstrip()}; with 10 % more: time "
        f"{_signed(time)} %, energy {_signed(energy)} %"
        for name, (time, energy) in list(moved.items())[:SHOWN]
    ]
    return lines + [
        f"  assumed: {name} of {board.title}: {text.removeprefix('ASSUME: ')}"
        for name, text in board.sources.items()
        if text.startswith("ASSUME")
    ]
