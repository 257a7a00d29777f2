"""Figure 8: power modes in the plane of time and energy.

Source: SIGMETRICS 2023, section 5.6. Drawn in `figures/modes.py`.
"""

from epochwatt.figures import modes
from epochwatt.figures.job import Job


def draw(job: Job) -> None:
    """Draw the panel."""
    modes.draw(job, "fig08", "energy_paper_wh")
