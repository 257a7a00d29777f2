"""HiPCW 2021, figures 2 to 5 and 8: medians of all epochs, what is missing."""

from panels import words

from epochwatt.figures.draw_figure import draw_figure

ALONE = {"num_workers": 0, "prefetch_factor": None}
QUARTER = {"dataset_scale": 0.25, "dataset_source": "synthetic"}


def test_bars_hold_the_median_of_all_epochs_beside_the_first_and_what_is_published(
    job_of, nx, nx_gone, numbers
):
    three = [{"wait_s": 9.5}, {"wait_s": 1.5}, {"wait_s": 2.5}]
    runs = [nx(*three, storage="ssd", num_workers=1), nx(*three, storage="hdd", **ALONE)]
    missing = [nx_gone(storage="sd", num_workers=2)]
    draw_figure(job_of("hipcw_fig02", *runs, missing=missing))
    columns = ("num_workers", "storage", "value", "n_epochs", "statistic", "epoch_set")
    assert numbers("hipcw_fig02", *columns, "published", "missing") == [
        ("0", "hdd", "3.0", "3", "median", "all", "704.0", ""),
        ("1", "ssd", "3.0", "3", "median", "all", "18.6", ""),
        ("2", "sd", "", "0", "median", "all", "", "out of memory"),
        ("0", "hdd", "10.0", "1", "median", "0", "", ""),
        ("1", "ssd", "10.0", "1", "median", "0", "", ""),
        ("2", "sd", "", "0", "median", "0", "", "out of memory"),
    ]
    agx = {"device": "agx", "power_mode": "g"}
    draw_figure(job_of("hipcw_fig04", nx(**agx, storage="sd", num_workers=2)))
    told = numbers("hipcw_fig04", "epoch_set", "value", "published", "published_id")
    assert told[1] == ("0", "1.5", "12.3", "H-III.B-04")  # of a first epoch


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
    four = {"e2e_s": 18.0}
    runs = [nx({}, {}, {}, storage="hdd", **ALONE),
            nx(four, four, four, storage="hdd", **ALONE, dataset_scale=4.0)]  # fmt: skip
    job = job_of("hipcw_fig08", *runs)
    draw_figure(job)
    told = {"×4.67, here ×4.5", "the whole data set", "four times the data"}
    assert told <= set(words(job, "hipcw_fig08d"))
