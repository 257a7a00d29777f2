"""Figure 16: Fig. 8 with markers by memory clock.

Source: SIGMETRICS 2023, appendix A.0.4. Drawn in `figures/modes.py`.
"""

from epochwatt.figures import modes
from epochwatt.figures.job import Job


def draw(job: Job) -> None:
    """Draw the panel."""
    modes.draw(job, "fig16", "energy_paper_wh", "emc_mhz")
