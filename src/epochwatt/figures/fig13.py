"""Figure 13: Fig. 8 with markers by number of CPU cores.

Source: SIGMETRICS 2023, appendix A.0.1. Drawn in `figures/modes.py`.
"""

from epochwatt.figures import modes
from epochwatt.figures.job import Job


def draw(job: Job) -> None:
    """Draw the panel."""
    modes.draw(job, "fig13", "energy_paper_wh", "cores")
