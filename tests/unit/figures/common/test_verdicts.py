"""What a panel says in its corner of claims that its runs do not bear out."""

from pathlib import Path

import pytest
from matplotlib.text import Annotation

from epochwatt import fields
from epochwatt.claims.number_sources import EpochTable
from epochwatt.claims.verdict import Comparison, Percentage
from epochwatt.errors import ConfigError
from epochwatt.figures.common import style
from epochwatt.figures.common.verdicts import claims_of, comparison_text, heads, not_borne_out

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
    (line,) = not_borne_out(["T5.6-baseloadb"], table((5.0, 4.0)), ROOT)
    assert line.startswith("Does not hold here: DVFS saves a larger part of the idle power")
    assert line.endswith("(T5.6-baseloadb): nx: 20 % here, read as < 10 %")


def test_an_unknown_claim_is_named():
    with pytest.raises(ConfigError, match=r"T9\.9.*\n.*takeaways"):
        not_borne_out(["T9.9"], table((5.0, 4.0)), ROOT)


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (
            Comparison("'a' not in front(m)", "m=resnet", "a", "not in", "front a g", False, -1.0),
            "resnet: a is in the front a g here, published as not in it",
        ),
        (
            Comparison(
                "near(x(E), 6)", "m=resnet, v=6, E=[2.3, 2.4]", 11.2, "near", 6, False, -1.0
            ),
            "resnet: 11.2 here, 6 published",
        ),
        (
            Comparison("near(x(a), 456)", "", 603.24, "near", 456, False, -1.0),
            "603 here, 456 published",
        ),
        (
            Comparison("x(m) <= 1", "m=lenet", Percentage(4.218), "<=", 1, False, -3.2),
            "lenet: 4.22 % here, published ≤ 1 %",
        ),
        (
            Comparison("x(a) < y(b)", "", 59.74, "<", 57.75, False, -2.0),
            "59.7 against 57.8 here, published as less",
        ),
        (
            Comparison("similar(x)", "", [1.0, 2.5], "similar within", Percentage(15), False, -2.0),
            "1, 2.5 here, published as alike",
        ),
    ],
)
def test_words_of_a_comparison(comparison, words):
    assert comparison_text(comparison) == words


def test_a_list_said_to_be_alike_names_what_each_value_is_of():
    comparison = Comparison(
        "similar([stall_ms_per_minibatch(nx, mobilenet, scale=x, epoch='all') for x in (0.25, 4)])",
        "", [16.3, 13.8], "similar within", Percentage(15), False, -2.0,
    )  # fmt: skip
    assert comparison_text(comparison).startswith("scale 0.25: 16.3 ms, scale 4: 13.8 ms here")


def test_a_comparison_of_one_network_names_it():
    comparison = Comparison(
        "near_pp(f(agx, lenet), 50)", "", Percentage(67.2), "near", Percentage(50), False, -1
    )
    assert comparison_text(comparison, ["lenet", "resnet"]) == "lenet: 67.2 % here, 50 % published"
    both = comparison._replace(text="f(lenet) < f(resnet)")
    assert comparison_text(both, ["lenet", "resnet"]) == "67.2 % here, 50 % published"


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
    assert off.startswith("Direction as published, size not: From the hard disk four")
    assert off.endswith("5.6 here, 4.67 published, beyond the tolerance of 15 %")
    (less,) = not_borne_out(["TH-III.Fb"], table_of(3.0), ROOT)
    assert less.startswith("Does not hold here: ")


def test_percentages_that_are_off_are_beyond_a_tolerance_in_points(made_up, job_of):
    """-41.5 % against -46.3 % is 4.8 points, though only a tenth of it."""
    changes = {"k": 100.0, "l": 86.0, "m": 50.0, "n": 50.0, "g": 50.0}
    about = {"setup": "sigmetrics2023"}
    runs = [made_up({}, {"compute_s": s}, power_mode=m, **about) for m, s in changes.items()]
    (line,) = not_borne_out(["T5.6.6d"], job_of("fig09", *runs).epoch_table(), ROOT)
    assert line.endswith("-41.9 % here, -46.3 % published, beyond the tolerance of 3 points")


def test_the_largest_misses_are_told_where_not_all_are(made_up, job_of):
    times = {"lenet": (80.0, 60.0, 60.0), "mobilenet": (80.0, 80.0, 80.0), "resnet": (9, 5, 5)}
    runs = [
        made_up({}, {"compute_s": s}, model=model, power_mode=mode, setup="sigmetrics2023")
        for model, seconds in times.items()
        for mode, s in zip("def", seconds, strict=True)
    ]
    (line,) = not_borne_out(["T5.6.6e"], job_of("fig09", *runs).epoch_table(), ROOT)
    assert "resnet, d, e: -44.4 % here, -2 % published" in line
    assert line.endswith("mobilenet, e, f: 0 % here, 15.6 % published; 1 more")
    assert "-9.7 % published" not in line


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
    assert told.endswith(
        "range over median of the stall per epoch: 75 % with 1 worker against 66.7 % with 0 "
        "workers here, published as less"
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
    assert told.startswith("Holds here for the GPU clock, not for the GPU utilisation: DVFS leaves")
    assert "(T5.5.2b): GPU utilisation, resnet: 91 % here, published ≥ 97 % with our" in told


def test_a_claim_of_which_all_parts_fail_names_each_quantity(made_up, job_of):
    (told,) = not_borne_out(["T5.5.2b"], table_with_dvfs(made_up, job_of, 91.0, 900.0), ROOT)
    assert told.startswith("Does not hold here: DVFS leaves")
    assert "GPU clock: 900 here, 1377 published" in told
    assert "GPU utilisation: 91 % here" in told


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
    assert told.startswith("Does not hold here: By which factor one worker cuts the stall")
    assert told.endswith(
        "agx, hdd: 11.7 here, 21.6 published; agx, sd: 11.7 here, 21.3 published; "
        "agx, ssd: 11.7 here, 21.3 published"
    )
    assert not_borne_out(["TH-III.Ab"], factors_of_a_worker(made_up, job_of, 213.0), ROOT) == []


def test_lines_are_shortened_to_their_claims_with_ids():
    lines = [
        "Does not hold here: One worker (w: 1) cuts it (T5.1.3c): lenet: 2.01 here, 2.5 published",
        "Holds here for the E2E, not for the stall: A second (a, b) cuts both (TH-III.Ab): stall",
    ]
    claims = ["One worker (w: 1) cuts it (T5.1.3c)", "A second (a, b) cuts both (TH-III.Ab)"]
    assert claims_of(lines) == "; ".join(claims)
    begins = ("Does not hold here: ", "Holds here for the E2E, not for the stall: ")
    assert heads(lines) == [b + c for b, c in zip(begins, claims, strict=True)]


@pytest.mark.parametrize(("backend", "lines"), [("host", 1), ("twin", 0)])
def test_a_measured_board_is_judged_by_the_general_form_as_the_page_does(backend, lines):
    """One worker stalls less than none (T5.1.3a): not here."""
    names = {"backend": backend, "device": "host", "instance": "local", "model": "lenet"}
    data = {"dataset": "mnist", "dataset_source": "digits", "storage": "disk", "power_mode": "asis"}
    factors = fields.with_defaults({**names, **data})
    rows = [
        {**factors, "num_workers": n, "epoch": 1, "run": f"w{n}", "valid": True,
         "power_scope": "", "stall_s": stall_s}
        for n, stall_s in ((0, 0.4), (1, 0.9))
    ]  # fmt: skip
    found = not_borne_out(["T5.1.3a"], EpochTable(rows), ROOT)
    assert len(found) == lines
    assert all(
        line.endswith("0.9 with 1 worker against 0.4 with 0 workers here, published as less")
        for line in found
    )
