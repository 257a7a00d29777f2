"""HiPCW 2021, figure 2: stall of an epoch by loader workers and storage medium, on NX.

Source: sections III.A to III.C.
"""

from epochwatt.figures.hipcw import draw_workers
from epochwatt.figures.job import Job


def draw(job: Job) -> None:
    """Draw the panel."""
    draw_workers(job, "stall_s", "stall per epoch (s)")
