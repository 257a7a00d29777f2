"""The answer to a what-if question, as lines for the terminal."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.errors import ConfigError
from epochwatt.text import aligned, counted
from epochwatt.twin.calibration.predicted import predict
from epochwatt.twin.calibration.queries import Modes, Question
from epochwatt.twin.inputs.numbers import number
from epochwatt.twin.inputs.parameters import Parameters
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.model.epoch import Epoch, Setting, cached_share, epoch
from epochwatt.twin.model.power import Clocks
from epochwatt.twin.validation.refits import load_refits
from epochwatt.twin.what_if import bottleneck, nearest
from epochwatt.twin.what_if import words as what_if_words

CONFIG = Path("config/twin")
FAR = 10.0  # times the default: no longer told in per cent
KEY = (
    "    S... and RS... name a section of the paper and a row of config/published/; "
    "results/claims.html",
    "    judges what each section concludes; held out: by a fit that did not see it (docs/twin.md)",
)
SHOWN = 5  # at most, of assumed parameters and of published numbers

Published = Mapping[Question, tuple[nearest.Fact, ...]]  # as `nearest.published_questions` gives it


class Side(NamedTuple):
    """One configuration and what the closed form says to it."""

    question: Question
    setting: Setting
    found: Epoch


@dataclass(frozen=True)
class Answer:
    """What was asked, the default beside it, and what both stand on.

    Attributes
    ----------
    asked, default : the two configurations
    twin, modes : all boards, and the clocks of their modes
    counted : where the network's counts are from, in words
    out_of_memory : the network did not fit on this board in the papers
    """

    asked: Side
    default: Side
    twin: Twin
    modes: Modes
    counted: str
    out_of_memory: bool

    @property
    def parameters(self) -> Parameters:
        """Of the simulation."""
        return self.twin.parameters


def answer_lines(answer: Answer, root: Path) -> list[str]:
    """Return the whole answer.

    Parameters
    ----------
    answer : what was asked and found
    root : the checkout, for the published numbers
    """
    asked = nearest.published_questions(root)
    return [
        *_headline(answer, _warnings(answer, asked, root)),
        "",
        *_table(answer),
        "",
        *_bottleneck(answer),
        "",
        *_uncertainty(answer, root),
        "",
        *_distance(answer, asked, root),
    ]


def _headline(answer: Answer, warnings: list[str]) -> list[str]:
    q, board = answer.asked.question, answer.asked.setting.board
    return [
        f"SIMULATED, not measured: one epoch of {q.model} on {board.title}",
        *(f"WARNING: {text}" for text in warnings),
        f"asked    {_shown(q, answer.modes)}",
        f"default  {_shown(answer.default.question, answer.modes)}",
        f"{answer.counted}; {counted(answer.asked.setting.n_minibatches, 'mini-batches')}",
    ]


def _warnings(answer: Answer, asked: Published, root: Path) -> list[str]:
    """Return what makes the whole answer doubtful."""
    p, q = answer.parameters, answer.asked.question
    found = []
    if answer.out_of_memory:
        found.append(
            f"{q.model} ran out of memory on this board in the papers, whatever is computed here"
        )
    if not _is_calibrated(p):
        found.append(
            "config/twin/parameters.yaml was never calibrated; all fitted parameters are where "
            "they were assumed to be (epochwatt calibrate-twin)"
        )
    if nearest.only_assumed(q.device, asked, root):
        found.append(f"no number of {q.device} was fitted: its data sheet and assumptions")
    if nearest.values("model", asked, device=q.device, model=q.model):
        return found + [
            f"nowhere published: {_option(key, q)}; there are {_words(known)}"
            for key, known in _other(q, asked).items()
            if getattr(q, key) not in nearest.values(key, asked)
        ]
    there = nearest.values("model", asked, device=q.device)
    return [
        *found,
        f"nothing published of {q.model} on {q.device}; of {q.device} there are: "
        f"{', '.join(there) or 'no runs'}",
    ]


def _is_calibrated(p: Parameters) -> bool:
    return any(p.described[name].value != p.described[name].prior for name in p.fitted)


def _shown(q: Question, modes: Modes) -> str:
    cores, cpu, gpu, emc = modes[q.device][q.power_mode]
    mode = f"mode {q.power_mode}" if "," not in q.power_mode else "mode"
    clocks = f"CPU {cpu:g}, GPU {gpu:g}, memory {emc:g} MHz"
    return ", ".join(
        [
            q.storage,
            counted(q.num_workers, "workers"),
            f"batch {q.batch_size}",
            f"{mode} ({counted(number(cores), 'cores')}, {clocks})",
            f"dvfs {q.dvfs}",
            "page cache empty" if q.cold else "page cache as earlier epochs leave it",
            *([] if q.scale == 1 else [f"data set x {q.scale:g}"]),
        ]
    )


def _table(answer: Answer) -> list[str]:
    asked = _rows(answer.asked, answer.parameters)
    default = _rows(answer.default, answer.parameters)
    cells = [("", "asked", "default", "change")]
    for name, value in asked.items():
        before = default[name]
        if math.isnan(value):
            cells.append((name, "", "", ""))
        else:
            cells.append((name, f"{value:.4g}", f"{before:.4g}", _change(name, value, before)))
    return aligned(cells)


def _change(name: str, value: float, before: float) -> str:
    if value == before or (not before and not name.endswith("%")):
        return "-"
    if name.endswith("%"):
        return f"{_signed(value - before)} points"
    if value > FAR * before:
        return f"{value / before:.0f} times"
    return f"{_signed(100.0 * (value / before - 1.0))} %"


def _signed(value: float) -> str:
    """Return a change to one digit; what rounds to nothing has no sign."""
    text = f"{value:+.1f}"
    return text if float(text) else text[1:]


def _rows(side: Side, p: Parameters) -> dict[str, float]:
    """Return what is printed of one epoch, by name and unit; NaN: a heading."""
    setting, e = side.setting, side.found
    n, hours = setting.n_minibatches, number(e.e2e_s) / 3600.0
    handover_s, copy_s = n * number(e.stages.handover_s), n * number(e.stages.copy_s)
    bandwidth = 1e6 * number(e.clocks.emc_mhz) * setting.board.emc_bytes_per_clock
    watts = {
        "CPU": e.parts.cpu_w,
        "GPU": e.parts.gpu_w,
        "memory": e.parts.memory_w,
        "rest of the module": e.parts.soc_w,
    }
    cached = cached_share(setting, p) if setting.samples.file_bytes else 1.0
    return {
        "epoch s": number(e.e2e_s),
        "  wait for the loader s": max(number(e.stall_s) - handover_s - copy_s, 0.0),
        "  hand-over s": handover_s,
        "  copy s": copy_s,
        "  compute s": number(e.compute_s),
        "  overhead s": number(e.overhead_s),
        "inside, side by side": math.nan,
        "  files fetched, sum of workers s": number(e.fetch_s),
        "  decoded and transformed, sum s": number(e.preprocess_s),
        "  kernels launched s": n * number(e.work.launch_s),
        "  kernels executed s": number(e.gpu_busy_s),
        "energy Wh": number(e.energy_wh),
        **{f"  {part} Wh": number(w) * hours for part, w in watts.items()},
        "mean power W": number(e.power_w),
        **{f"  {part} W": number(w) for part, w in watts.items()},
        "GPU utilisation %": 100.0 * number(e.gpu_busy_s / e.e2e_s),
        "CPU utilisation %": 100.0 * number(e.cpu_busy_s / e.e2e_s / e.clocks.cores),
        "memory bandwidth used %": 100.0 * number(e.moved_bytes / e.e2e_s) / bandwidth,
        "samples read from the medium %": 100.0 * number(e.read_share),
        "data set that the page cache holds %": 100.0 * number(cached),
    }


def _bottleneck(answer: Answer) -> list[str]:
    shorter = bottleneck.shorter_pct(answer.asked.setting, answer.parameters)
    gains = [
        f"{name} {gain:.1f} %"
        for name, gain in sorted(shorter.items(), key=lambda item: -item[1])
        if gain >= 0.05
    ]
    lines = ["bottleneck: several at once; none alone makes the epoch shorter, if 10 % faster"]
    if gains:
        lines = [
            f"bottleneck: {bottleneck.words(shorter)}",
            f"  10 % faster, the epoch is shorter by: {', '.join(gains)}",
        ]
    if answer.asked.question.dvfs == "on":
        chosen = Clocks(*map(number, answer.asked.found.clocks))
        lines.append(
            f"  clocks that the governors choose: CPU {chosen.cpu_mhz:.0f}, GPU "
            f"{chosen.gpu_mhz:.0f}, memory {chosen.emc_mhz:.0f} MHz"
        )
    return lines


def _uncertainty(answer: Answer, root: Path) -> list[str]:
    """Return how far the answer moves when one take-away is not fitted."""
    p, setting = answer.parameters, answer.asked.setting
    if not _is_calibrated(p):
        return ["uncertainty: no interval without a calibration"]
    try:
        refits = load_refits(root / CONFIG, p)
    except ConfigError as error:
        return [f"uncertainty: no interval; {str(error).splitlines()[0]} (make validate)"]
    told = [epoch(setting, {**p, **values}) for values in refits.values()]
    times, energies = _range(e.e2e_s for e in told), _range(e.energy_wh for e in told)
    return [
        f"uncertainty: fitted anew without one take-away, for each of {len(refits) - 1}",
        f"  epoch {times} s, energy {energies} Wh; what the model lacks is not in it",
    ]


def _range(values: Iterable[Any]) -> str:
    numbers = [number(value) for value in values]
    return f"{min(numbers):.4g} to {max(numbers):.4g}"


def _distance(answer: Answer, asked: Published, root: Path) -> list[str]:
    q = answer.asked.question
    lines = [
        f"how far this is from the numbers that the paper prints ({nearest.MAIN_PAPER}; those that "
        "the simulation is judged by)",
        *_keys(q, asked),
    ]
    near = nearest.nearest(q, asked, answer.modes)
    rows = nearest.validation(root)
    if near:
        lines += _near(near, answer, rows)
    lines += _validated(q.device, rows)
    return lines + _assumed(answer)


def _keys(q: Question, asked: Published) -> list[str]:
    """Return which keys of a question published numbers speak of."""
    of_pair = {"device": q.device, "model": q.model}
    if not nearest.values("model", asked, **of_pair):
        return []
    other = _other(q, asked)
    there = [_option(key, q) for key in nearest.OPTIONS if key not in other]
    told = ", ".join(there) or "none of these"
    return [
        f"  it prints numbers of {q.model} on {q.device} with {told}",
        *(f"  none with {_option(key, q)}, but with {_words(on)}" for key, on in other.items()),
    ]


def _other(q: Question, asked: Published) -> dict[str, list[Any]]:
    """Return the keys of whose value nothing is published of this pair, and the values there."""
    there = {
        key: nearest.values(key, asked, device=q.device, model=q.model) for key in nearest.OPTIONS
    }
    return {key: known for key, known in there.items() if getattr(q, key) not in known}


def _option(key: str, q: Question) -> str:
    return f"{nearest.OPTIONS[key]} {_word(getattr(q, key))}"


def _words(values: Iterable[Any]) -> str:
    return ", ".join(map(_word, values))


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _near(near: nearest.Near, answer: Answer, rows: list[dict[str, str]]) -> list[str]:
    b = near.question
    other = [nearest.OPTIONS.get(key, "--model").removeprefix("--") for key in near.differs]
    lines = [
        f"  nearest: {b.model}, {_shown(b, answer.modes)}",
        f"    {'differs in ' + ', '.join(other) if other else 'the very configuration'}; numbers: "
        f"{len(near.facts)}",
    ]
    errors = {row["published_id"]: _error(row) for row in rows if row["held_out_error_pct"]}
    simulated = _simulated(near, answer)
    for fact in near.facts[:SHOWN]:
        error = f"; held out, the error is {errors[fact.id]}" if fact.id in errors else ""
        ours = " to ".join(f"{v:.4g}" for v in simulated.get(fact.id, ())) or "-"
        lines.append(f"    {fact.id} {what_if_words.told(fact)}, simulated {ours}{error}")
    return [*lines, *KEY]


def _error(row: dict[str, str]) -> str:
    unit = "points" if row["judged_as"] == "points" else "%"
    return f"{float(row['held_out_error_pct']):.1f} {unit}"


def _simulated(near: nearest.Near, answer: Answer) -> dict[str, tuple[float, ...]]:
    """Return what the simulation says to the numbers, where it has counts of all their networks."""
    works = answer.twin.works
    known = [f for f in near.facts if all(q.model in works for q in nearest.configurations(f))]
    return predict(known, answer.twin, answer.modes, answer.parameters)


def _validated(device: str, rows: list[dict[str, str]]) -> list[str]:
    if not rows:
        return [f"  held-out errors: {nearest.VALIDATION} is not there (make validate)"]
    medians = nearest.median_errors_pct(rows, device)
    told = [
        f"{name.replace('_', ' and ')} {value:.1f} % (n = {n})"
        for name, (value, n) in medians.items()
    ]
    return [f"  median held-out error on {device}: {', '.join(told) or 'of no time or energy'}"]


def _assumed(answer: Answer) -> list[str]:
    p, board = answer.parameters, answer.asked.setting.board
    moved = bottleneck.assumed_in_play(answer.asked.setting, p)
    lines = [
        f"  assumed, no published number speaks for it: {name} = {p[name]:g} "
        f"{p.described[name].unit}; 10 % more: time {_signed(time)} %, energy {_signed(energy)} %"
        for name, (time, energy) in list(moved.items())[:SHOWN]
    ]
    lines += [
        f"  assumed: {name} of {board.title}: {text.removeprefix('ASSUME: ')}"
        for name, text in board.sources.items()
        if text.startswith("ASSUME")
    ]
    return lines
