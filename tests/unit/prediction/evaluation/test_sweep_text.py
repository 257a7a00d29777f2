"""What scores of sweeps say: by the bootstrap, not by point estimates."""

import pytest

from epochwatt.prediction.evaluation.sweep_files import as_text
from epochwatt.prediction.evaluation.sweep_names import (
    BROKEN,
    BROKEN_SHARE,
    HELD,
    LEFT_OUT,
    MEDIAN,
    P90,
    PROFILED,
    RECOMMENDED,
    REGRET,
    TO_BEST,
    TO_PAPER,
)
from epochwatt.prediction.evaluation.sweep_text import (
    choice_table,
    error_table,
    held_table,
    judged,
    listed,
    sentences,
    summary,
    text_lines,
)

UNIT = {"sweep": "s", "provenance": "public", "device": "tx1", "workload": "net"}
UNIT |= {"n_workloads": 1, "n_modes": 100, "knobs": "gpu_mhz", "n_draws": 10}


def row(method, statistic, value, low="", high="", n=4, how="random", target="time_s", **other):
    numbers = {"value": value, "low": low, "high": high}
    place = {"learned_from": how, "n_profiled": n, "method": method, "target": target}
    return UNIT | place | {"statistic": statistic} | numbers | other


def scored(n, ratio_to_best, ratio_to_paper):
    """Return rows of two methods; physical has the lower median throughout."""
    return [
        *(row("paper", statistic, value, n=n) for statistic, value in ((MEDIAN, 5.0), (P90, 20.0))),
        *(row("physical", s, value, n=n) for s, value in ((MEDIAN, 4.0), (P90, 15.0))),
        row("paper", TO_BEST, 1.25, *ratio_to_best, n=n),
        row("physical", TO_PAPER, 0.8, *ratio_to_paper, n=n),
    ]


CHOICES = [
    *(row("physical", s, v, target=RECOMMENDED) for s, v in
      ((REGRET, 1.0), (BROKEN, 55.0), (BROKEN_SHARE, 20.0))),
    *(row(PROFILED, s, v, target=RECOMMENDED) for s, v in
      ((REGRET, 9.0), (BROKEN, 0.0), (BROKEN_SHARE, 0.0))),
]  # fmt: skip


def unit(*rows):
    (found,) = judged(as_text(rows))
    return found


def test_a_lower_median_alone_is_no_win():
    level = unit(*scored(4, (0.9, 1.6), (0.6, 1.1)))
    (said,) = sentences(level)
    assert said == (
        "s, net: time: from 4 random modes physical and paper are level (median error 4.0 %); no "
        "method beats the paper's plain regression from 4 random modes."
    )
    assert error_table(level, "time_s") == [
        ["time, from", "4 modes"],
        ["paper", "5.0 / 20 *"],
        ["physical", "4.0 / 15 *"],
    ]


def test_a_win_is_one_that_resamples_agree_on():
    won = unit(*scored(4, (1.1, 1.6), (0.6, 0.9)), *scored(10, (1.1, 1.6), (0.6, 0.9)))
    (said,) = sentences(won)
    assert said == (
        "s, net: time: from 4 and 10 random modes physical is best (median error 4.0, 4.0 %); some "
        "method beats the paper's plain regression throughout."
    )
    assert error_table(won, "time_s")[1] == ["paper", "5.0 / 20", "5.0 / 20"]


def test_without_the_paper_nothing_is_said_to_beat_it():
    alone = [one for one in scored(4, (1.1, 1.6), (0.6, 0.9)) if one["method"] == "physical"]
    alone = [one for one in alone if one["statistic"] != TO_PAPER]
    assert sentences(unit(*alone))[0].endswith("; the paper's plain regression has no number here.")


def test_broken_budgets_stand_beside_regret_and_beside_what_was_profiled():
    both = unit(*scored(4, (1.1, 1.6), (0.6, 0.9)), *CHOICES)
    assert sentences(both)[-1] == (
        "s, net: the fastest mode that is predicted to keep a power budget breaks it, from 4 "
        "random modes: physical 55 % (regret 1.0 %); the best profiled mode keeps it, at a regret "
        "of 9.0 %."
    )
    assert choice_table(both)[1:] == [["physical", "1; 55 (20)"], [PROFILED, "9; 0 (0)"]]


def test_a_summary_counts_and_never_mixes_provenances():
    rows = scored(4, (1.1, 1.6), (0.6, 1.1))
    others = [one | {"sweep": "other"} for one in rows]
    made = [one | {"sweep": "made", "provenance": "simulated"} for one in rows]
    units = judged(as_text([*rows, *others, *made]))
    assert summary(units) == [
        "All public sweeps, time: among the best in 2 comparisons: physical 2 (alone 2).",
        "All public sweeps, time: no method beats the paper's plain regression in 2 of 2 "
        "comparisons: s from 4 random modes; other from 4 random modes.",
    ]


def test_text_has_intervals_and_reasons_of_what_is_left_out():
    held = row("physical", HELD, 91.2, 88.0, 95.0)
    missing = row("log", LEFT_OUT, "", note="it does not know what power_limit_w does")
    lines = text_lines(as_text([*scored(4, (1, 1), (1, 1)), held, missing]), ["tiny: 2 modes"])
    assert "s: net on tx1, 100 modes of gpu_mhz (public)" in lines
    assert "left out: log: it does not know what power_limit_w does" in lines
    assert lines[-1] == "not judged: tiny: 2 modes"
    assert held_table(unit(held)) == [
        ["held by intervals of 90 %", "4 modes"],
        ["time, physical", "91"],
    ]


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), ("abc", "a, b and c")]
)
def test_lists_in_sentences(words, text):
    assert listed(words) == text
