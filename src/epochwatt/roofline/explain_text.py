"""Explanations in a sentence each, for the report and the terminal."""

from collections.abc import Sequence

from epochwatt.roofline.explain import (
    BELOW,
    COMPUTE,
    COMPUTE_PARTS,
    COPY,
    LOADER,
    OVERHEAD,
    TIME_PARTS,
    Explanation,
    Observed,
)
from epochwatt.roofline.next_mode import Step

BOUND = {LOADER: "the loader", COPY: "copying to the GPU", OVERHEAD: OVERHEAD, COMPUTE: COMPUTE}
KNOB_WORDS = {
    "cores": "{:g} cores",
    "cpu_mhz": "CPU at {:g} MHz",
    "gpu_mhz": "GPU at {:g} MHz",
    "emc_mhz": "memory at {:g} MHz",
}
TOO_SHORT_S = 1.0  # of an epoch, as for results/tables/advice.csv
FAR_BELOW = 0.5  # of the time of computing; where the ceilings allow less, they are not the limit
LITTLE = 0.005  # of an epoch; less is no change


def sentence(e: Explanation) -> str:
    """Return what holds a run back."""
    name = f"Bound by {BOUND[e.bound_by]}"
    whole = sum(e.time_s[part] for part in TIME_PARTS)
    if whole < TOO_SHORT_S:
        return "Too short to tell what holds it back."
    if e.bound_by != COMPUTE:
        return f"{name}: {_pct(e.time_s[e.bound_by] / whole)} of the epoch."
    if e.roof_share < FAR_BELOW:
        return (
            f"{name}, far below the roof: kernels take {1.0 / e.roof_share:.1f} times what the "
            f"ceilings allow, which is mostly {e.limit}."
        )
    parts = sorted(COMPUTE_PARTS, key=lambda part: -e.time_s[part])
    shares = ", ".join(f"{part} {_pct(e.time_s[part] / whole)}" for part in parts)
    below = f"; {_pct(e.time_s[BELOW] / whole)} {BELOW}" if e.time_s[BELOW] > 0 else ""
    return f"{name}, its limit is {e.limit}: {shares} of the epoch{below}."


def steps_sentence(steps: Sequence[Step], seen: Observed) -> str:
    """Return what each knob of the mode would change, one after the other."""
    return "; ".join(step_words(step, seen) for step in steps)


def step_words(step: Step, seen: Observed) -> str:
    """Return what one knob would change: `GPU at 900 MHz: 12 % less time, 3 % more energy`."""
    words = _change(step.e2e_s / seen.e2e_s, "time")
    if step.energy_j is not None and seen.energy_j:
        words += f", {_change(step.energy_j / seen.energy_j, 'energy')}"
    return f"{KNOB_WORDS[step.knob].format(step.new)}: {words}"


def _change(ratio: float, what: str) -> str:
    if abs(ratio - 1.0) < LITTLE:
        return f"the same {what}"
    return f"{_pct(abs(ratio - 1.0))} {'less' if ratio < 1.0 else 'more'} {what}"


def _pct(share: float) -> str:
    return f"{100.0 * share:.0f} %"
