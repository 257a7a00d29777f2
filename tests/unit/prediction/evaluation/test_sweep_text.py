"""What scores of sweeps say: by the bootstrap, not by point estimates."""

from epochwatt.prediction.evaluation.sweep_table import (
    BROKEN,
    BROKEN_SHARE,
    COLUMNS,
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
    summary_table,
    text_lines,
)

UNIT = {"sweep": "s", "provenance": "public", "device": "tx1", "workload": "net"}
UNIT |= {"n_workloads": 1, "n_modes": 100, "knobs": "gpu_mhz", "n_draws": 10}


def row(method, statistic, value, low="", high="", n=4, how="random", target="time_s", **other):
    numbers = {"value": value, "low": low, "high": high}
    place = {"learned_from": how, "n_profiled": n, "method": method, "target": target}
    cells = dict.fromkeys(COLUMNS, "") | UNIT | place | {"statistic": statistic} | numbers | other
    return {name: str(cell) for name, cell in cells.items()}


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
    (found,) = judged(rows)
    return found


def test_a_lower_median_alone_is_no_win():
    level = unit(*scored(4, (0.9, 1.6), (0.6, 1.1)))
    assert level.beats_paper(("random", 4), "time_s") == []
    assert error_table(level, "time_s") == [
        ["time, from", "4 modes"],
        ["paper", "5.0 / 20 *"],
        ["physical", "4.0 / 15 *"],
    ]


def test_a_win_is_one_that_resamples_agree_on():
    won = unit(*scored(4, (1.1, 1.6), (0.6, 0.9)), *scored(10, (1.1, 1.6), (0.6, 0.9)))
    assert won.beats_paper(("random", 10), "time_s") == ["physical"]
    assert error_table(won, "time_s")[1] == ["paper", "5.0 / 20", "5.0 / 20"]


def test_without_the_paper_nothing_is_said_to_beat_it():
    alone = [one for one in scored(4, (1.1, 1.6), (0.6, 0.9)) if one["method"] == "physical"]
    alone = [one for one in alone if one["statistic"] != TO_PAPER]
    assert unit(*alone).beats_paper(("random", 4), "time_s") is None


def test_broken_budgets_stand_beside_regret_and_beside_what_was_profiled():
    both = unit(*scored(4, (1.1, 1.6), (0.6, 0.9)), *CHOICES)
    assert choice_table(both)[1:] == [["physical", "1; 55 (20)"], [PROFILED, "9; 0 (0)"]]


def test_a_summary_counts_and_never_mixes_provenances():
    rows = scored(4, (1.1, 1.6), (0.6, 0.9))
    others = [one | {"sweep": "other"} for one in scored(4, (0.9, 1.6), (0.6, 1.1))]
    made = [one | {"sweep": "made", "provenance": "simulated"} for one in rows]
    assert summary_table(judged([*rows, *others, *made]))[1:] == [
        ["public", "time", "physical", "2", "2", "1", "1 of 2"],
        ["public", "time", "paper", "2", "1", "0", "0 of 2"],
    ]
    assert summary_table(judged(rows)) == []


def test_text_has_intervals_and_reasons_of_what_is_left_out():
    held = row("physical", HELD, 91.2, 88.0, 95.0)
    missing = row("log", LEFT_OUT, "", note="it does not know what power_limit_w does")
    lines = text_lines(([*scored(4, (1, 1), (1, 1)), held, missing]), ["tiny: 2 modes"])
    assert "s: net on tx1, 100 modes of gpu_mhz (public)" in lines
    assert "left out: log: it does not know what power_limit_w does" in lines
    assert lines[-1] == "not judged: tiny: 2 modes"
    assert held_table(unit(held)) == [
        ["held by intervals of 90 %", "4 modes"],
        ["time, physical", "91"],
    ]
