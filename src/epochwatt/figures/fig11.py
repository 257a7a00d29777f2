"""Figure 11: power modes in the plane of time and power.

Source: SIGMETRICS 2023, appendix. Drawn in `figures/modes.py`.
"""

from epochwatt.figures import modes
from epochwatt.figures.job import Job


def draw(job: Job) -> None:
    """Draw the panel."""
    modes.draw(job, "fig11", "power_mean_w")
