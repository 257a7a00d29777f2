"""Print `epochwatt fit`: the answer in one screen, or as JSON."""

from typing import Any

from epochwatt.board.training.resident import MIB
from epochwatt.memory.fit import Answer, Way, with_margin
from epochwatt.text import aligned, counted

VERDICTS = {"fits": "fits", "tight": "may not fit", "no": "does not fit"}


def fit_lines(answer: Answer) -> list[str]:
    """Return an answer as lines for the terminal."""
    asked, now, margin = answer.now.request, answer.now, answer.constants.margin
    how = [asked.precision, f"batch size {asked.batch_size}", counted(asked.num_workers, "workers")]
    if asked.task == "train":
        how.insert(1, str(asked.optimiser))
        how += ["checkpointing"] if asked.checkpointing else []
        how += [f"LoRA of rank {asked.lora}"] if asked.lora else []
        how += [f"gradients of {asked.accumulate} accumulated"] if asked.accumulate > 1 else []
    if asked.weights != "fp32":
        how.insert(1, f"weights in {asked.weights}")
    verb = {"train": "training", "infer": "inference"}[asked.task]
    return [
        f"FORECAST, not measured: {verb} {asked.model} on {answer.device.title}",
        ", ".join(how),
        "",
        f"{VERDICTS[answer.verdict(now.need)]}: it takes {_mib(now.need.total)} MiB, or "
        f"{_mib(with_margin(now.need, answer.constants))} with a margin of {100 * margin:.0f} %",
        f"available: {_mib(answer.room)} MiB ({answer.room_source})",
        f"largest batch size that fits: {now.largest or 'none'}; {answer.killed} would be killed",
        "",
        *aligned([("MiB", ""), *_parts(answer)]),
        "",
        *aligned([_header(answer), *(_row(answer, way) for way in (now, *answer.changes))]),
        "",
        *_time_lines(answer),
    ]


def _parts(answer: Answer) -> list[tuple[str, str]]:
    """Return what memory is taken for, and what is left for the page cache."""
    need, tensors = answer.now.need, answer.now.tensors
    engine = "context of CUDA, kernels, workspaces" if answer.device.board else "oneDNN, threads"
    rows = [
        ("weights and buffers", tensors.weights),
        ("gradients", tensors.gradients),
        ("optimiser's state", tensors.optimiser),
        ("mini-batch", tensors.minibatch),
        ("activations and temporaries", tensors.activations),
        ("kept by the allocator", need.kept),
        ("Python and libraries", need.process),
        (engine, need.engine),
        ("loader workers", need.workers),
        ("mini-batches that they hold", need.in_flight),
        ("data set in memory", need.data),
    ]
    left = max(0, answer.room - need.total)
    shown = [(name, _mib(n_bytes)) for name, n_bytes in rows if n_bytes]
    samples = answer.asked.samples
    share = ""
    if samples.file_bytes:
        data_bytes = (answer.now.request.samples or 0) * samples.file_bytes
        share = f", {min(100.0, 100.0 * left / data_bytes):.0f} % of the data set"
    return [*shown, ("left for the page cache", f"{_mib(left)}{share}")]


def _header(answer: Answer) -> tuple[str, ...]:
    header = ("what to change first", "MiB", "", "largest batch size")
    energy = "Wh at most" if answer.simulator.is_limit else "Wh"
    return (*header, "epoch s", energy) if answer.now.epoch else header


def _row(answer: Answer, way: Way) -> tuple[str, ...]:
    cells = (
        way.change,
        _mib(way.need.total),
        VERDICTS[answer.verdict(way.need)],
        str(way.largest or "none"),
    )
    if not answer.now.epoch:
        return cells
    if way.epoch is None:
        return (*cells, "-", "-")
    energy_wh = way.epoch.energy_wh
    return (*cells, _seconds(way.epoch.e2e_s), "-" if energy_wh is None else f"{energy_wh:.3g}")


def _time_lines(answer: Answer) -> list[str]:
    """Return how time and energy were found, or why not, and what the forecast rests on."""
    samples = counted(answer.now.request.samples or 0, "samples")
    lines = [f"time and energy of {samples}: {answer.simulator.source}"]
    if answer.simulator.held_out:
        lines.append(f"  {answer.simulator.held_out}; only products are faster in 16 bits")
    if answer.device.board:
        return [
            *lines,
            "memory: tensors counted; CUDA, system and margin are assumed, no board checked",
        ]
    return lines


def _seconds(t_s: float) -> str:
    return f"{t_s:,.0f}" if t_s >= 1000 else f"{t_s:.4g}"


def _mib(n_bytes: float) -> str:
    return f"{n_bytes / MIB:,.0f}"


def as_json(answer: Answer) -> dict[str, Any]:
    """Return an answer as a document; bytes, seconds, watt-hours."""

    def way(way: Way) -> dict[str, Any]:
        return {
            "change": way.change,
            "verdict": answer.verdict(way.need),
            "bytes": way.need.total,
            "largest_batch_size": way.largest,
            "epoch_s": way.epoch and way.epoch.e2e_s,
            "energy_wh": way.epoch and way.epoch.energy_wh,
        }

    tensors = answer.now.tensors
    return {
        "model": answer.now.request.model,
        "device": answer.now.request.device,
        "verdict": answer.verdict(answer.now.need),
        "room_bytes": answer.room,
        "margin": answer.constants.margin,
        "killed_from_batch_size": answer.killed,
        "parts_bytes": {
            **answer.now.need._asdict(),
            **{k: getattr(tensors, k) for k in ("weights", "gradients", "optimiser", "minibatch")},
            "activations": tensors.activations,
        },
        "as_asked": way(answer.now),
        "changes": [way(change) for change in answer.changes],
        "energy_is_limit": answer.simulator.is_limit,
        "time": [answer.simulator.source, answer.simulator.held_out],
    }
