"""Compute quantities of published configurations in closed form, many at once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from epochwatt.twin.inputs.numbers import Array, Clocks, Values
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.model.epoch import Epoch, Setting, cached_share, epoch
from epochwatt.twin.model.power import idle_w
from epochwatt.twin.model.storage import BLOCK_BYTES

# Of the published configurations (Table 2), whatever config/workloads.yaml is changed to.
DATASETS = {"lenet": "mnist", "mobilenet": "gld23k", "resnet": "cifar10", "vgg11": "cifar10"}
_HOURS_15_S = 15 * 3600.0


class Question(NamedTuple):
    """One configuration: an epoch of the long run, or one with a cold page cache."""

    device: str
    model: str
    storage: str
    num_workers: int
    batch_size: int
    power_mode: str
    dvfs: str = "off"
    cold: bool = False
    scale: float = 1.0
    setup: str = ""


def _per_minibatch_ms(name: str) -> Callable[[Setting, Epoch, Mapping[str, float]], Array]:
    return lambda setting, e, p: 1e3 * getattr(e, name) / setting.n_minibatches


def _baseload_share_pct(setting: Setting, e: Epoch, p: Values) -> Array:
    base_w = idle_w(setting.board, "logging_on_dvfs_off", setting.clocks, "module", p)
    return 100.0 * base_w / e.power_w


Quantity = Callable[[Setting, Epoch, Mapping[str, float]], Array]

QUANTITIES: dict[str, Quantity] = {
    "e2e_s": lambda s, e, p: e.e2e_s,
    "stall_s": lambda s, e, p: e.stall_s,
    "compute_s": lambda s, e, p: e.compute_s,
    "overhead_s": lambda s, e, p: e.overhead_s,
    "compute_ms_per_minibatch": _per_minibatch_ms("compute_s"),
    "stall_ms_per_minibatch": _per_minibatch_ms("stall_s"),
    "energy_wh": lambda s, e, p: e.energy_wh,
    "power_w": lambda s, e, p: e.power_w,
    "gpu_util_pct": lambda s, e, p: 100.0 * e.gpu_busy_s / e.e2e_s,
    "cpu_util_pct": lambda s, e, p: 100.0 * e.cpu_busy_s / e.e2e_s / e.clocks.cores,
    "iops": lambda s, e, p: (
        e.read_share * s.n_samples * s.samples.file_bytes / BLOCK_BYTES / e.e2e_s
    ),
    "cached_pct": lambda s, e, p: 100.0 * cached_share(s, p),
    "gpu_freq_mhz": lambda s, e, p: e.clocks.gpu_mhz + 0.0 * e.e2e_s,
    "n_epochs_in_15h": lambda s, e, p: _HOURS_15_S / e.e2e_s,
    "stall_s/e2e_s": lambda s, e, p: 100.0 * e.stall_s / e.e2e_s,
    "(stall_s+compute_s)/e2e_s": lambda s, e, p: 100.0 * (e.stall_s + e.compute_s) / e.e2e_s,
    "baseload_wh/energy_wh": _baseload_share_pct,
}


def answer(
    questions: Iterable[Question],
    twin: Twin,
    p: Values,
    quantities: Mapping[str, Quantity] = QUANTITIES,
) -> dict[Question, dict[str, float]]:
    """Return quantities of each configuration.

    Parameters
    ----------
    questions : configurations; those that differ in workers and clocks only are one evaluation
    quantities : by name, how each is computed from an epoch
    """
    return answer_each(questions, twin, [p], quantities)[0]


def answer_each(
    questions: Iterable[Question],
    twin: Twin,
    draws: Sequence[Values],
    quantities: Mapping[str, Quantity],
) -> list[dict[Question, dict[str, float]]]:
    """Return what `answer` does for each draw of parameters, all of them in one evaluation."""
    answers: list[dict[Question, dict[str, float]]] = [{} for _ in draws]
    if not draws:
        return answers
    p: dict[str, Array] = dict(draws[0])  # one that is the same in all draws stays a number
    for name, value in draws[0].items():
        if any(draw[name] != value for draw in draws):
            p[name] = np.array([draw[name] for draw in draws])
    for group in groups(questions, twin):
        tables = evaluate(group, quantities, p, len(draws))
        columns = {name: table.tolist() for name, table in tables.items()}
        for i, of_draw in enumerate(answers):
            for j, q in enumerate(group.questions):
                of_draw[q] = {name: column[i][j] for name, column in columns.items()}
    return answers


def evaluate(
    group: "Group", quantities: Mapping[str, Quantity], p: Mapping[str, Array], n: int
) -> dict[str, NDArray[np.floating]]:
    """Return quantities of a group with each of n sets of parameters: shape (sets, questions).

    `p`: parameters, each a number or of shape (sets,).
    """
    size = len(group.questions)
    setting = replace(
        group.setting,
        clocks=Clocks(*(np.tile(clock, n) for clock in group.setting.clocks)),
        num_workers=np.tile(group.setting.num_workers, n),
    )
    values = {k: np.repeat(value, size) if np.ndim(value) else value for k, value in p.items()}
    numbers = cast(Values, values)
    mean = epoch(setting, numbers)
    return {
        name: np.broadcast_to(
            np.asarray(quantity(setting, mean, numbers), float), n * size
        ).reshape(n, size)
        for name, quantity in quantities.items()
    }


class Group(NamedTuple):
    """Questions that are one evaluation, and its setting: they differ in workers and clocks."""

    questions: list[Question]
    setting: Setting


def groups(questions: Iterable[Question], twin: Twin) -> list[Group]:
    """Return the questions in groups, each once."""
    by_setting: dict[tuple[object, ...], list[Question]] = defaultdict(list)
    for q in dict.fromkeys(questions):
        by_setting[(q.device, q.model, q.storage, q.batch_size, *q[6:])].append(q)
    return [Group(group, _setting(group, twin)) for group in by_setting.values()]


def _setting(group: list[Question], twin: Twin) -> Setting:
    """Return the setting of questions that differ in workers and power mode only."""
    q = group[0]
    board, work, samples = twin.find(q.device, q.model, DATASETS.get(q.model, ""))
    clocks = [twin.clocks(question.device, question.power_mode) for question in group]
    return Setting(
        board,
        work,
        samples,
        q.storage,
        q.batch_size,
        Clocks(*np.array(clocks, dtype=float).T),
        np.array([question.num_workers for question in group]),
        q.cold,
        q.dvfs == "on",
        q.scale,
        q.setup,
    )
