"""Figure 14: Fig. 8 with markers by CPU clock.

Source: SIGMETRICS 2023, appendix A.0.2. Drawn in `figures/modes.py`.
"""

from epochwatt.figures import modes
from epochwatt.figures.job import Job


def draw(job: Job) -> None:
    """Draw the panel."""
    modes.draw(job, "fig14", "energy_paper_wh", "cpu_mhz")
