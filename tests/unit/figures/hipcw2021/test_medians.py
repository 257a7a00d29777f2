"""HiPCW 2021, figures 2 to 5 and 8: medians of all epochs, what is missing."""

from panels import INVALID

from epochwatt.figures.draw_figure import draw_figure

ALONE = {"num_workers": 0, "prefetch_factor": None}
QUARTER = {"dataset_scale": 0.25, "dataset_source": "synthetic"}


def test_bars_hold_the_median_of_all_epochs_beside_what_is_published(job_of, nx, numbers):
    three = [{"wait_s": 9.5}, {"wait_s": 1.5}, {"wait_s": 2.5}]
    runs = [nx(*three, storage="hdd", **ALONE), nx(*three, storage="ssd", num_workers=1)]
    draw_figure(job_of("hipcw_fig02", *runs))
    columns = ("num_workers", "storage", "value", "n_epochs", "statistic", "epoch_set")
    assert numbers("hipcw_fig02", *columns, "published", "seen_by_fit") == [
        ("0", "hdd", "3.0", "3", "median", "all", "704.0", "True"),
        ("1", "ssd", "3.0", "3", "median", "all", "18.6", "True"),
        ("0", "hdd", "10.0", "1", "median", "0", "", ""),
        ("1", "ssd", "10.0", "1", "median", "0", "", ""),
    ]


def test_first_epochs_have_their_published_marks(job_of, nx, numbers):
    agx = {"device": "agx", "power_mode": "g"}
    draw_figure(job_of("hipcw_fig04", nx(**agx, storage="sd", num_workers=2)))
    told = numbers("hipcw_fig04", "epoch_set", "value", "published", "published_id")
    assert told[1] == ("0", "1.5", "12.3", "H-III.B-04")


def test_bars_are_in_order_of_workers_and_name_what_is_missing(job_of, nx, nx_gone, numbers):
    runs = [nx(storage="ssd", num_workers=4), nx(storage="hdd", num_workers=2)]
    missing = [nx_gone(storage="sd", num_workers=2)]
    draw_figure(job_of("hipcw_fig02", *runs, missing=missing))
    assert numbers("hipcw_fig02", "num_workers", "storage", "value", "missing")[:3] == [
        ("2", "hdd", "1.5", ""),
        ("2", "sd", "", "out of memory"),
        ("4", "ssd", "1.5", ""),
    ]


def test_bars_name_a_first_epoch_that_is_missing(job_of, nx, numbers, tmp_path):
    runs = [nx(INVALID, {}, {}, storage=medium, num_workers=1) for medium in ("hdd", "ssd")]
    runs.append(nx(storage="sd", num_workers=1))
    draw_figure(job_of("hipcw_fig02", *runs))
    assert numbers("hipcw_fig02", "storage", "value", "missing")[3:] == [
        *(("hdd", "", "no valid first epoch"), ("sd", "1.5", "")),
        ("ssd", "", "no valid first epoch"),
    ]
    svg = (tmp_path / "figures/hipcw_fig02.svg").read_text("utf-8")
    assert svg.count(">missing: no valid first epoch<") == 2


def test_a_run_missing_in_both_epoch_sets_says_so_once(job_of, nx, nx_gone, tmp_path):
    missing = [nx_gone(storage="sd", num_workers=2)]
    path = nx(storage="ssd", num_workers=4)
    draw_figure(job_of("hipcw_fig02", path, missing=missing))
    svg = (tmp_path / "figures/hipcw_fig02.svg").read_text("utf-8")
    assert svg.count(">missing: out of memory<") == 1


def test_several_boards_have_separate_groups(job_of, nx, tmp_path):
    runs = [nx(storage="hdd", instance=board, num_workers=1) for board in ("d1", "d2")]
    draw_figure(job_of("hipcw_fig02", *runs))
    svg = (tmp_path / "figures/hipcw_fig02.svg").read_text("utf-8")
    assert "instance d1" in svg
    assert "instance d2" in svg


def test_growth_is_linear_where_time_at_one_times_scale_says_so(job_of, nx, numbers):
    quick = {"wait_s": 0.0, "copy_s": 0.0, "e2e_s": 3.0}
    runs = [
        nx({}, {}, {}, storage="ssd"),
        nx(quick, quick, quick, storage="ssd", **QUARTER),
        nx({}, {}, {}, storage="ssd", num_workers=2, **QUARTER),  # nothing to compare with
    ]
    draw_figure(job_of("hipcw_fig08", *runs))
    columns = ("quantity", "dataset_scale", "num_workers", "value", "published")
    assert numbers("hipcw_fig08c", *columns) == [
        ("e2e_s", "0.25", "2", "4.0", ""),
        ("e2e_s", "0.25", "4", "3.0", ""),
        ("e2e_s", "1.0", "4", "4.0", "600.0"),
        ("e2e_s_linear", "0.25", "4", "1.0", ""),
    ]


def test_share_in_the_cache_is_that_after_epochs_and_a_zero_is_told(job_of, nx, numbers, tmp_path):
    shares = [{"cached_after_pct": share} for share in (0.0, 30.0, 40.0)]
    none = {"cached_after_pct": 0.0}
    runs = [nx(*shares, storage="hdd"), nx(none, none, storage="hdd", **QUARTER)]
    job = job_of("hipcw_fig08", *runs)
    draw_figure(job)
    texts = " ".join(job.drawn["hipcw_fig08b"].remarks)
    assert "The paper prints no number of this panel" in texts
    assert "is the simulation's: they take room from the page cache" in texts
    assert numbers("hipcw_fig08b", "dataset_scale", "value") == [
        ("0.25", "0.0"),
        ("1.0", "30.0"),
    ]
    assert numbers("hipcw_fig08a", "value") == []  # no run with an SSD


def words(job, panel):
    """Return the texts of a panel."""
    return [text.get_text() for text, _, _ in job.saved[panel]]


def test_brackets_say_by_how_much_workers_cut_the_stall_as_the_seconds_do(job_of, nx):
    slow, quick = [{"wait_s": 500.0}] * 3, [{"wait_s": 19.5}] * 3
    runs = [
        nx(*slow, storage="sd", **ALONE, instance="d1"),
        nx(*quick, storage="sd", num_workers=1),
    ]
    job = job_of("hipcw_fig02", *runs)
    draw_figure(job)
    texts = words(job, "hipcw_fig02")
    assert "SD ÷27.28, here ÷25" in texts
    factors = "Factors are A / B of the paper's seconds; it prints (A - B) / B, 1 less."
    assert factors in job.drawn["hipcw_fig02"].remarks
    assert {"200", "500"} <= set(texts)  # of a logarithmic axis


def test_a_number_that_is_printed_without_its_workers_has_no_mark_among_them(job_of, nx, numbers):
    job = job_of("hipcw_fig03", nx(storage="ssd", num_workers=1), nx(storage="ssd", num_workers=4))
    draw_figure(job)
    medians = [row for row in numbers("hipcw_fig03", "epoch_set", "published") if row[0] == "all"]
    assert medians == [("all", "595.0"), ("all", "")]
    note = "Not marked, as printed without a number of workers: SSD, 600 s (III.E)."
    assert note in job.drawn["hipcw_fig03"].remarks


def test_growth_of_the_epoch_stands_beside_the_published_one(job_of, nx):
    four = {"e2e_s": 18.0}
    runs = [
        nx({}, {}, {}, storage="hdd", **ALONE),
        nx(four, four, four, storage="hdd", **ALONE, dataset_scale=4.0),
    ]
    job = job_of("hipcw_fig08", *runs)
    draw_figure(job)
    texts = words(job, "hipcw_fig08d")
    assert "×4.67, here ×4.5" in texts
    assert {"the data set", "four times the data"} <= set(texts)
