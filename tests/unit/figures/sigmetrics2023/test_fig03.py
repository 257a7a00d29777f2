"""Figure 3: the numbers plotted."""

from epochwatt.figures.sigmetrics2023.fig03 import bars_of, draw


def test_numbers_are_of_epoch_0_without_workers_and_of_later_ones_with_four(
    job_of, made_up, gone, numbers
):
    epochs = ({"e2e_s": 6.0}, {"energy_paper_wh": 0.25})
    draw(
        job_of(
            "fig03",
            *(made_up(*epochs, storage=s, num_workers=n) for s in ("hdd", "ssd") for n in (0, 4)),
            missing=[gone(storage="sd", num_workers=4)],
        )
    )
    told = [
        row
        for row in numbers("fig03a", "storage", "num_workers", "epoch_set", "quantity", "value")
        if row[3] == "e2e_s"
    ]
    assert told == [("ssd", "0", "0", "e2e_s", "6.0"), ("hdd", "0", "0", "e2e_s", "6.0")]
    columns = ("storage", "num_workers", "epoch_set", "value", "missing")
    assert numbers("fig03b", *columns)[3::4] == [
        *(("ssd", "4", "1+", "4.0", ""), ("sd", "4", "1+", "", "out of memory")),
        ("hdd", "4", "1+", "4.0", ""),
    ]
    assert numbers("fig03c", *columns) == [
        *(("ssd", "4", "1+", "0.25", ""), ("sd", "4", "1+", "", "out of memory")),
        ("hdd", "4", "1+", "0.25", ""),
    ]


def test_media_are_in_one_order_and_others_come_last(job_of, made_up):
    media = ["usb", "hdd", "ssd", "sd"]
    bars = bars_of(job_of("fig03", *(made_up(storage=s, num_workers=4) for s in media)), 4)
    assert [bar.tick for bar in bars] == ["SSD", "SD", "HDD", "usb"]


def test_bound_on_the_change_between_media_is_drawn_where_both_are_there(job_of, made_up, numbers):
    nx = {"device": "nx", "model": "mobilenet", "power_mode": "15W", "num_workers": 4}
    runs = [made_up({}, {"e2e_s": e2e}, storage=s, **nx) for s, e2e in (("ssd", 4.0), ("hdd", 5.0))]
    draw(job_of("fig03", *runs))
    told = numbers("fig03b", "published_id", "published_qualifier", "value", "is_relation")
    assert [row[:3] for row in told if row[3]] == [("RS5.2.2-01", "less_than", "25.0")]
    assert not any(row[0] for row in numbers("fig03a", "is_relation"))


def test_note_counts_the_epochs_that_are_drawn(job_of, made_up):
    long = {"num_workers": 4, "setup": "sigmetrics2023"}
    job = job_of("fig03", made_up({}, {}, num_workers=0), made_up(*[{}] * 20, **long))
    draw(job)
    told = {panel: " ".join(t.get_text() for t, _, _ in texts).replace("\n", " ")
               for panel, texts in job.saved.items()}  # fmt: skip
    assert "; 1 run, 1 epoch" in told["fig03a"]
    assert "; 1 run, 5 epochs" in told["fig03b"]  # not the 19 of a run of 15 hours
