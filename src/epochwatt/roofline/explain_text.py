"""Explanations in a sentence each, for the report and the terminal."""

from collections.abc import Sequence

from epochwatt.epochs.bottleneck import (
    BELOW_ROOF,
    COMPUTE,
    COMPUTE_PARTS,
    TOO_SHORT,
    TOO_SHORT_S,
)
from epochwatt.roofline.explain import TIME_PARTS, Explanation, Observed
from epochwatt.roofline.next_mode import Step

KNOB_WORDS = {
    "cores": "{:g} cores",
    "cpu_mhz": "CPU at {:g} MHz",
    "gpu_mhz": "GPU at {:g} MHz",
    "emc_mhz": "memory at {:g} MHz",
}
FAR_BELOW = 0.5  # of the time of computing; where the ceilings allow less, they are not the limit
LITTLE = 0.005  # of an epoch; less is no change


def sentence(e: Explanation) -> str:
    """Return what holds a run back."""
    bottleneck, whole = e.bottleneck, sum(e.time_s[part] for part in TIME_PARTS)
    bound = bottleneck.bound_by
    if whole < TOO_SHORT_S:
        return TOO_SHORT
    if bound != COMPUTE:
        return f"{bottleneck}: {_pct(e.time_s[bound] / whole)} of the epoch."
    if e.roof_share < FAR_BELOW:
        return (
            f"Bound by {bound}, far below the roof: kernels take {1.0 / e.roof_share:.1f} times "
            f"what the ceilings allow, which is mostly {bottleneck.limit}."
        )
    parts = sorted(COMPUTE_PARTS, key=lambda part: -e.time_s[part])
    shares = ", ".join(f"{part} {_pct(e.time_s[part] / whole)}" for part in parts)
    below_s = e.time_s[BELOW_ROOF]
    below = f"; {_pct(below_s / whole)} {BELOW_ROOF}" if below_s > 0 else ""
    return f"{bottleneck}: {shares} of the epoch{below}."


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
