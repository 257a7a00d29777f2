"""What a panel says in its corner of claims that its runs do not bear out."""

from pathlib import Path

import pytest
from matplotlib.text import Annotation

from epochwatt import columns
from epochwatt.claims.number_sources import EpochTable
from epochwatt.errors import ConfigError
from epochwatt.figures.common import style
from epochwatt.figures.common.verdicts import (
    Unmet,
    by_workers,
    failing_verdicts,
    not_borne_out,
)

ROOT = Path(__file__).resolve().parents[4]


def of(device, watts):
    """Return idle powers at the plug: states ii and iii."""
    mode = {"agx": "g", "orin": "MAXN", "nx": "15W", "nano": "MAXN"}[device]
    return [
        {"device": device, "instance": "d1", "power_mode": mode, "state": state,
         "power_scope": "socket", "power_w": power}
        for state, power in zip(("ii", "iii"), watts, strict=True)
    ]  # fmt: skip


def table(nx_w):
    boards = {"agx": (10.0, 6.0), "orin": (12.0, 8.0), "nx": nx_w, "nano": (3.0, 2.95)}
    return EpochTable([], [row for device, watts in boards.items() for row in of(device, watts)])


def test_a_claim_that_holds_and_one_that_cannot_be_judged_say_nothing():
    ids = ["T5.6-baseloadb", "T5.4.2a"]
    assert not_borne_out(ids, table((5.0, 4.9)), ROOT) == []


def test_saving_a_fifth_on_nx_is_not_negligible_although_agx_saves_more_watts():
    (unmet,) = not_borne_out(["T5.6-baseloadb"], table((5.0, 4.0)), ROOT)
    line = unmet.text()
    assert line.startswith("Direction as published, size not: DVFS saves a larger part of the idle")
    assert line.endswith("(T5.6-baseloadb): nx: read as < 10 %, here 20.0 %")
    (more,) = not_borne_out(["T5.6-baseloadb"], table((5.0, 2.0)), ROOT)
    assert more.begin == "Does not hold here"


def test_an_unknown_claim_is_named():
    with pytest.raises(ConfigError, match=r"T9\.9.*\n.*takeaways"):
        not_borne_out(["T9.9"], table((5.0, 4.0)), ROOT)


def test_an_order_that_holds_is_not_denied_where_only_its_size_is_off(made_up, job_of):
    about = {"setup": "hipcw2021", "device": "nx", "model": "mobilenet", "storage": "hdd"}
    about |= {"dataset": "gld23k", "power_mode": "15W", "num_workers": 0}

    def table_of(factor):
        runs = [
            made_up({"e2e_s": 1000.0}, **about, dataset_scale=1),
            made_up({"e2e_s": 1000.0 * factor}, **about, dataset_scale=4),
        ]
        return job_of("hipcw_fig08", *runs).epoch_table()

    (off,) = not_borne_out(["TH-III.Fb"], table_of(5.6), ROOT)
    assert off.text().startswith("Direction as published, size not: From the hard disk four")
    assert off.text().endswith("published a factor of 4.67, here 5.6; our tolerance: 15 %")
    (less,) = not_borne_out(["TH-III.Fb"], table_of(3.0), ROOT)
    assert less.begin == "Does not hold here"


def test_a_panel_tells_it_above_its_note_in_a_colour(pytestconfig):
    path = str(pytestconfig.rootpath / "config/paper.mplstyle")
    with style.panel(path, {"title": "t", "width_in": 3.0, "height_in": 2.0}, "note") as (
        figure,
        _,
    ):
        style.warn(figure, [], "#B2182B")
        assert figure.get_supxlabel() == "note"
        style.warn(figure, ["Does not hold: " + "x " * 40 + "(TH-III.Fb)"], "#B2182B")
        (warning,) = (a for a in figure.artists if isinstance(a, Annotation))
        lines = warning.get_text().split("\n")
        assert (lines[0].startswith("Does not hold"), warning.get_color()) == (True, "#B2182B")
        assert any("(TH-III.Fb)" in line for line in lines)
        assert figure.get_supxlabel() == "\n" * len(lines) + "note"


def test_a_spread_and_what_its_sides_differ_in_are_named(made_up, job_of):
    stalls = {"agx": (20.0, 10.0), "nx": (30.0, 16.0), "nano": (40.0, 22.0)}
    modes = {"agx": "g", "nx": "15W", "nano": "MAXN"}
    paths = [
        made_up({}, {"wait_s": stall_s - 0.5, "copy_s": 0.5, "e2e_s": 50.0}, device=device,
                storage="hdd", setup="sigmetrics2023", power_mode=modes[device],
                num_workers=w, prefetch_factor=2 if w else None)
        for device, of_device in stalls.items()
        for w, stall_s in enumerate(of_device)
    ]  # fmt: skip
    (told,) = not_borne_out(["T5.1.5b"], job_of("fig02", *paths).epoch_table(), ROOT)
    assert told.text().endswith(
        "range over median of the stall per epoch: published as less with 1 worker than with 0 "
        "workers, here 75.0 % against 66.7 %"
    )


def table_with_dvfs(made_up, job_of, util_pct, gpu_mhz):
    paths = [
        made_up({}, {}, model=model, storage="ssd", setup="sigmetrics2023", dvfs="on")
        for model in ("resnet", "mobilenet")
    ]
    job = job_of("fig06", *paths)
    more = {"gpu_util_pct": util_pct, "gpu_freq_mhz": gpu_mhz}
    return job.epoch_table({(run.id, k): more for run in job.runs for k in (0, 1)})


def test_a_part_of_a_claim_that_holds_is_told_beside_the_one_that_fails(made_up, job_of):
    (told,) = not_borne_out(["T5.5.2b"], table_with_dvfs(made_up, job_of, 91.0, 1377.0), ROOT)
    assert told.begin == "Holds here for the GPU clock, not for the GPU utilisation"
    assert "(T5.5.2b): resnet, GPU utilisation: published ≈ 100 %, here 91.0 %" in told.text()
    assert told.text().endswith("; our tolerance: 3 points")


def test_a_claim_of_which_all_parts_fail_names_each_quantity(made_up, job_of):
    (told,) = not_borne_out(["T5.5.2b"], table_with_dvfs(made_up, job_of, 91.0, 900.0), ROOT)
    assert told.begin == "Does not hold here"
    assert "GPU clock: published 1377 MHz, here 900 MHz" in told.text()
    assert "GPU utilisation: published ≈ 100 %, here 91.0 %" in told.text()


def factors_of_a_worker(made_up, job_of, alone_s):
    about = {"setup": "hipcw2021", "device": "agx", "model": "mobilenet", "dataset": "gld23k"}
    epochs = {w: {"wait_s": s - 0.5, "copy_s": 0.5, "e2e_s": 999.0}
              for w, s in ((0, alone_s), (1, 10.0))}  # fmt: skip
    paths = [
        made_up(epochs[w], epochs[w], **about, storage=medium, num_workers=w, prefetch_factor=p)
        for medium in ("hdd", "sd", "ssd")
        for w, p in ((0, None), (1, 2))
    ]
    return job_of("hipcw_fig04", *paths).epoch_table()


def test_cases_that_have_their_runs_are_judged_where_others_have_none(made_up, job_of):
    (told,) = not_borne_out(["TH-III.Ab"], factors_of_a_worker(made_up, job_of, 117.0), ROOT)
    assert told.head.startswith("Not as published: By which factor one worker cuts the stall")
    assert told.numbers == (
        "agx, HDD: published a factor of 21.56, here 11.7",
        "agx, SD: published a factor of 21.3, here 11.7",
        "agx, SSD: published a factor of 21.31, here 11.7",
    )
    assert not_borne_out(["TH-III.Ab"], factors_of_a_worker(made_up, job_of, 213.0), ROOT) == []


def test_a_panel_has_the_first_numbers_and_its_caption_all():
    unmet = Unmet("Does not hold here", "It is so (T1)", ("a", "b", "c"), ("our tolerance: 1 %",))
    assert unmet.head == "Does not hold here: It is so (T1)"
    assert unmet.text(2) == f"{unmet.head}: a; b; 1 more; our tolerance: 1 %"
    assert unmet.text(3) == unmet.text() == f"{unmet.head}: a; b; c; our tolerance: 1 %"


@pytest.mark.parametrize(("claim", "others"), [("TH-III.Ec", {0}), ("TH-III.Fb", {2})])
def test_a_number_printed_for_some_workers_is_not_judged_with_others(
    made_up, job_of, claim, others
):
    """TH-III.Ec has no number: it may hold with others. TH-III.Fb has one, printed for none."""
    on = {"setup": "hipcw2021", "device": "nx", "model": "mobilenet", "dataset": "gld23k"}
    on |= {"power_mode": "15W"}
    paths = [
        made_up(*[{"wait_s": wait_s, "e2e_s": 100.0 * n}] * 3, **on, storage=storage,
                dataset_scale=scale, num_workers=w, prefetch_factor=2 if w else None)
        for storage, w, of_sizes in (
            ("ssd", 4, (3.0, 2.0, 1.0)), ("ssd", 0, (2.0, 2.0, 2.0)),
            ("hdd", 0, (1.0, 1.0, 9.0)), ("hdd", 2, (1.0, 1.0, 4.67)),
        )
        for scale, n, wait_s in zip((0.25, 1, 4), of_sizes, of_sizes, strict=True)
    ]  # fmt: skip
    source = job_of("hipcw_fig08", *paths).epoch_table()
    assert failing_verdicts([claim], source, ROOT)
    fails, holds = by_workers(claim, others, source, ROOT)
    assert (bool(fails), bool(holds)) == (claim == "TH-III.Ec",) * 2


@pytest.mark.parametrize(("backend", "lines"), [("host", 1), ("twin", 0)])
def test_a_measured_board_is_judged_by_the_general_form_as_the_page_does(backend, lines):
    """One worker stalls less than none (T5.1.3a): not here."""
    names = {"backend": backend, "device": "host", "instance": "local", "model": "lenet"}
    data = {"dataset": "mnist", "dataset_source": "digits", "storage": "disk", "power_mode": "asis"}
    factors = columns.with_defaults({**names, **data})
    rows = [
        {**factors, "num_workers": n, "epoch": 1, "run": f"w{n}", "valid": True,
         "power_scope": "", "stall_s": stall_s}
        for n, stall_s in ((0, 0.4), (1, 0.9))
    ]  # fmt: skip
    found = not_borne_out(["T5.1.3a"], EpochTable(rows), ROOT)
    assert len(found) == lines
    assert all(
        one.text().endswith(
            "published as less with 1 worker than with 0 workers, here 0.9 s against 0.4 s"
        )
        for one in found
    )
