"""HiPCW 2021, figure 6: reads from the disk over time, on NX, by medium and size of the data set.

Source: sections III.E and III.F. The paper does not say how many workers it ran; what the figure's
settings select is drawn side by side. The text names the media of panels a to c and d to f; that
the size rises within them is inferred.
"""

from epochwatt.figures.hipcw import Points, draw_series
from epochwatt.figures.job import Job
from epochwatt.figures.runs import RunData
from epochwatt.figures.series import series


def draw(job: Job) -> None:
    """Draw the panels."""
    said = "reads from the disk", "1/s"
    draw_series(job, "read_iops", said, ("t_s", "training time (s)"), reads)


def reads(run: RunData, folder: str) -> Points:
    """Return the rate of reads over the training time, s."""
    told = series(run, folder, "host", "read_iops")
    epochs = list(dict.fromkeys(told.epoch.tolist()))
    return Points(told.t_s, told.values, told.bounds_s, epochs, told.missing)
