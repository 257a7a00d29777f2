"""Resolve nominal clocks to a board's own steps (board side: Python 3.6 grammar).

The papers and NVIDIA's mode names use round numbers: 1200 MHz is the step 1190.4, 2100 is
2112, 900 is 905.25, 1333 is 1331.2. nvpmodel rounds such a number silently; here it is resolved
first, and both numbers are recorded.
"""

from typing import Sequence

from epochwatt.errors import ConfigError

WITHIN = 0.02  # of a step


def resolve(what: str, nominal_mhz: float, steps_mhz: Sequence[float]) -> float:
    """Return the step that a nominal clock stands for, MHz; `what` is the clock, as `cpu_mhz`.

    Raises ConfigError: no step lies within 2 %; names the two nearest.
    """
    if not steps_mhz:
        raise ConfigError(
            f"{what}: the steps of this board's clock are not known",
            found=f"{nominal_mhz:g} MHz",
            do=f"leave {what} out of the power mode",
        )
    nearest = sorted(steps_mhz, key=lambda step: abs(step - nominal_mhz))[:2]
    if abs(nearest[0] - nominal_mhz) <= WITHIN * nearest[0]:
        return nearest[0]
    raise ConfigError(
        f"{what}: {nominal_mhz:g} MHz is not a step of this board's clock",
        allowed="within {:.0f} % of a step; the nearest are {} MHz".format(
            100 * WITHIN, " and ".join(f"{step:g}" for step in sorted(nearest))
        ),
    )
