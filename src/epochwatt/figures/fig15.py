"""Figure 15: Fig. 8 with markers by GPU clock.

Source: SIGMETRICS 2023, appendix A.0.3. Drawn in `figures/modes.py`.
"""

from epochwatt.figures import modes
from epochwatt.figures.job import Job


def draw(job: Job) -> None:
    """Draw the panel."""
    modes.draw(job, "fig15", "energy_paper_wh", "gpu_mhz")
