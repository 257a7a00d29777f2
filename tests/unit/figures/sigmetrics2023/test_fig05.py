"""Figure 5: the numbers plotted."""

import pytest
from panels import words

from epochwatt.figures.sigmetrics2023.fig05 import draw

RESNET = {"model": "resnet"}
NANO = {"device": "nano", "storage": "sd", "power_mode": "MAXN"}


def test_violins_counts_and_spreads_of_boards(job_of, made_up, gone, numbers):
    """Two boards of a type, a third that cannot be had, another type whose epochs are all alike."""
    epochs = [{"e2e_s": e2e_s, "energy_paper_wh": 3.0} for e2e_s in (400.0, 350.0, 300.0, 310.0)]
    job = job_of(
        "fig05",
        made_up(*epochs, instance="d2", **RESNET),
        made_up(*epochs[:2], instance="d1", **RESNET),
        made_up({}, {}, {}, **NANO),
        missing=[gone("not bound to a board", instance="d3", **RESNET)],
    )
    draw(job)
    told = numbers("fig05a", "device", "instance", "quantity", "epoch", "value")
    assert [row for row in told if row[2] == "e2e_s"] == [
        ("agx", "d1", "e2e_s", "1", "350.0"),
        *(("agx", "d2", "e2e_s", "1", "350.0"), ("agx", "d2", "e2e_s", "2", "300.0")),
        *(("agx", "d2", "e2e_s", "3", "310.0"), ("nano", "d1", "e2e_s", "1", "4.0")),
        ("nano", "d1", "e2e_s", "2", "4.0"),
    ]
    told = numbers("fig05a", "instance", "device", "quantity", "value", "published", "missing")
    assert [(*row[:2], *row[3:]) for row in told if row[2] == "n_epochs_in_15h"] == [
        ("d1", "agx", "144.0", "150.0", ""),  # 15 h over the mean of all epochs
        ("d2", "agx", str(54000 / 340), "150.0", ""),
        ("d3", "agx", "", "150.0", "not bound to a board"),
        ("d1", "nano", "13500.0", "670.0", ""),
    ]
    assert "144" in words(job, "fig05a")
    columns = ("published_id", "published", "value", "is_relation")
    time = [row[:3] for row in numbers("fig05a", *columns) if row[3]]
    energy = [row[:3] for row in numbers("fig05b", *columns) if row[3]]
    assert [row[:2] for row in time] == [
        *(("RS5.4.2-01", "1.0"), ("RS5.4.1-01", "1.0")),
        *(("RS5.4.2-03", "7.8"), ("RS5.4.1-03", "1.0")),
    ]
    over_time = 100 * 40 / 310  # the epoch that is farthest from its board's median
    of_medians = 100 * 40 / 330
    assert [float(row[2]) for row in time] == pytest.approx([of_medians, over_time, 0.0, 0.0])
    assert [(row[0], float(row[2])) for row in energy] == [("RS5.4.3-01", 0.0), ("", 0.0)]
