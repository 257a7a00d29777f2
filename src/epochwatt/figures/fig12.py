"""Figure 12: Fig. 8 again.

Source: SIGMETRICS 2023, appendix. Drawn in `figures/modes.py`.
"""

from epochwatt.figures import modes
from epochwatt.figures.job import Job


def draw(job: Job) -> None:
    """Draw the panel."""
    modes.draw(job, "fig12", "energy_paper_wh")
