"""`epochwatt explain`: all that is known of why a run takes what it takes, for the terminal."""

from collections.abc import Mapping

from epochwatt.epochs.bottleneck import COMPUTE_PARTS
from epochwatt.roofline.explain import ENERGY_PARTS, TIME_PARTS
from epochwatt.roofline.explain_runs import SHARED, Explained
from epochwatt.roofline.explain_text import sentence, step_words
from epochwatt.roofline.next_mode import FITTED
from epochwatt.text import aligned

SIMULATED = "SIMULATED, not measured: "
ORIGINS = {
    "measured": "measured on this device by micro-kernels",
    "fake": "not measured, from a fake board",
    "simulated": "the simulated board's own constants",
    "public": "measured by others",
}


def explanation_lines(explained: Explained) -> list[str]:
    """Return all that is known of why a run takes what it takes."""
    c, e = explained.columns, explained.explanation
    is_simulated = c["provenance"] == "simulated"
    verb = {"train": "training", "infer": "inference"}[c["task"]]
    return [
        f"{SIMULATED if is_simulated else ''}{explained.run}",
        f"{c['workload']}, {verb}, mini-batches of {c['batch_size']}, {c['precision']}, on "
        f"{c['device']}/{c['instance']}",
        "",
        sentence(e),
        "",
        *_parts(explained),
        "",
        *_groups(explained),
        "",
        *_steps(explained),
        "",
        *_basis(explained),
    ]


def _parts(explained: Explained) -> list[str]:
    e, seen = explained.explanation, explained.seen
    rows: list[tuple[str, ...]] = [("an epoch", "s", "share", "J", "share")]
    for part in dict.fromkeys((*TIME_PARTS, *ENERGY_PARTS)):
        time = _cells(e.time_s, part, seen.e2e_s)
        rows.append((f"  {part}", *time, *_cells(e.energy_j, part, seen.energy_j)))
    energy = "" if seen.energy_j is None else f"{seen.energy_j:.4g}"
    rows.append(("  all", f"{seen.e2e_s:.4g}", "100 %", energy, "100 %" if energy else ""))
    if not e.energy_j:
        rows = [row[:3] for row in rows if row[0].strip() in (*TIME_PARTS, "all", "an epoch")]
    return aligned(rows)


def _cells(parts: Mapping[str, float], part: str, whole: float | None) -> tuple[str, str]:
    if part not in parts or not whole:
        return "", ""
    return f"{parts[part]:.4g}", f"{100.0 * parts[part] / whole:.1f} %"


def _groups(explained: Explained) -> list[str]:
    e, whole = explained.explanation, explained.seen.e2e_s
    rows: list[tuple[str, ...]] = [
        ("operators", "kernels", "FLOP/byte", *COMPUTE_PARTS, "of the epoch")
    ]
    for kind, group in e.groups.items():
        shares = [f"{100.0 * group.time_s[part] / whole:.1f} %" for part in COMPUTE_PARTS]
        intensity = f"{group.flops / group.bytes:.3g}" if group.bytes else ""
        total = f"{100.0 * sum(group.time_s.values()) / whole:.1f} %"
        rows.append((kind, str(group.launches), intensity, *shares, total))
    return aligned(rows)


def _steps(explained: Explained) -> list[str]:
    if not explained.steps:
        return ["next mode up: no knob has a higher value among the modes with ceilings"]
    lines = ["next mode up, one knob at a time"]
    for step in explained.steps:
        basis = "its ceilings" if step.basis == FITTED else "clock laws over all modes"
        lines.append(f"  {step_words(step, explained.seen)} (from {basis})")
    return lines


def _basis(explained: Explained) -> list[str]:
    fit, e = explained.fit, explained.explanation
    ridge = fit.ceilings.ridge_flop_per_byte
    lines = [
        f"ceilings: {fit.flops_per_s / 1e9:.4g} GFLOP/s, {fit.bytes_per_s / 1e9:.4g} GB/s, "
        f"{1e6 * fit.launch_s:.3g} \u00b5s for a launch; arithmetic is the limit from {ridge:.3g} "
        f"FLOP per byte on ({ORIGINS[fit.provenance]})",
        *[SHARED] * fit.is_shared,
    ]
    if e.roof_share > 1.0:
        lines.append(
            f"the ceilings ask for {e.roof_share:.2f} times the time of computing: launches "
            "overlap, or caches serve it; the parts were scaled to it"
        )
    if not e.energy_j:
        lines.append("no energy: the run or the ceilings have none of the same sensor")
    elif e.energy_scale < 1.0:
        lines.append(
            f"constant power and work ask for {1.0 / e.energy_scale:.2f} times the energy; the "
            "parts were scaled to it"
        )
    return lines
