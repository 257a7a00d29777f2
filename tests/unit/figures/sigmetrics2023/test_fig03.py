"""Figure 3: the numbers plotted."""

from panels import words

from epochwatt.figures.sigmetrics2023.fig03 import bars_of, draw


def test_numbers_are_of_epoch_0_without_workers_and_of_later_ones_with_four(
    job_of, made_up, gone, numbers
):
    epochs = ({"e2e_s": 6.0}, {"energy_paper_wh": 0.25})
    runs = [made_up(*epochs, storage=s, num_workers=n) for s in ("hdd", "ssd") for n in (0, 4)]
    long = made_up(*[{}] * 20, storage="emmc", num_workers=4, setup="sigmetrics2023")
    job = job_of("fig03", *runs, long, missing=[gone(storage="sd", num_workers=4)])
    draw(job)
    columns = ("storage", "num_workers", "epoch_set", "value", "missing")
    assert numbers("fig03a", *columns)[3::4] == [
        *(("ssd", "0", "0", "6.0", ""), ("hdd", "0", "0", "6.0", ""))
    ]
    missing = ("sd", "4", "1+", "", "out of memory")  # media are in one order
    assert numbers("fig03b", *columns)[3::4] == [
        *(("ssd", "4", "1+", "4.0", ""), missing, ("hdd", "4", "1+", "4.0", "")),
        ("emmc", "4", "1+", "4.0", ""),
    ]
    assert numbers("fig03c", *columns)[:3] == [
        *(("ssd", "4", "1+", "0.25", ""), missing, ("hdd", "4", "1+", "0.25", ""))
    ]
    assert [bar.tick for bar in bars_of(job, 4)] == ["SSD", "SD", "HDD", "eMMC"]
    assert any(
        "; 3 runs of LeNet-5, 7 epochs" in text for text in words(job, "fig03b")
    )  # not 19 of a long run
