"""Other priors: how they differ, what is read and written, and what the chosen ones know."""

import math
import re

import pytest

from epochwatt.errors import ConfigError
from epochwatt.twin.validation.cross_validation import GOAL_CLASSES
from epochwatt.twin.validation.other_priors import (
    CHOSEN,
    FILE,
    N_SHIFTED,
    SEED,
    SHIFTED,
    WIDER,
    PriorRow,
    at_priors,
    load_priors,
    prior_lines,
    prior_rows,
    variants,
    write_priors,
)
from epochwatt.twin.validation.validate_twin import validation

NAMES = [WIDER, *(f"{SHIFTED} {i}" for i in range(1, N_SHIFTED + 1))]


def test_shifted_priors_lie_one_width_off_up_or_down(twin):
    p = twin.parameters.candidates()
    found = variants(p, N_SHIFTED, SEED)
    assert list(found) == NAMES
    signs = {}
    for name, other in found.items():
        if name != WIDER:
            signs[name] = [
                math.log(other.described[n].prior / p.described[n].prior)
                / math.log(p.described[n].factor)
                for n in p.fitted
            ]
            assert [abs(x) for x in signs[name]] == pytest.approx([1.0] * len(p.fitted))
            assert {round(x) for x in signs[name]} == {-1, 1}
    assert len({tuple(map(round, each)) for each in signs.values()}) == N_SHIFTED
    wider = found[WIDER].described
    for n in p.fitted:
        assert math.log(wider[n].factor) == pytest.approx(2 * math.log(p.described[n].factor))
        assert wider[n].prior == p.described[n].prior


def test_same_seed_gives_the_same(twin):
    one, again, other = (variants(twin.parameters, 2, seed) for seed in (3, 3, 4))
    assert {k: v.described for k, v in one.items()} == {k: v.described for k, v in again.items()}
    assert one[f"{SHIFTED} 1"].described != other[f"{SHIFTED} 1"].described


def test_nothing_fitted_is_every_candidate_at_its_prior(twin):
    p = at_priors(twin.parameters)
    candidates = twin.parameters.candidates().fitted
    assert all(p[n] == p.described[n].prior for n in candidates)
    assert len(candidates) > 20
    assert {n for n in p if p[n] != twin.parameters[n]} <= set(p.fitted)


def test_committed_file_has_every_choice_and_the_held_out_errors(evidence):
    rows = load_priors(evidence.folder)
    told = {(row.priors, row.fitted, row.class_): row for row in rows}
    wanted = [(CHOSEN, "no"), (CHOSEN, "yes"), (WIDER, "yes")]
    wanted += [(name, fitted) for name in NAMES[1:] for fitted in ("no", "yes")]
    assert {key[:2] for key in told} == set(wanted)
    for now in prior_rows(CHOSEN, "yes", validation(evidence)):
        then = told[CHOSEN, "yes", now.class_]
        assert (then.n, then.seed) == (now.n, now.seed)
        assert then.median_error_pct == pytest.approx(now.median_error_pct, abs=0.006)


def test_chosen_priors_alone_predict_better_than_any_moved_ones(evidence):
    """Which is why nobody may say that they were chosen without the papers."""
    time_pct = {
        row.priors: row.median_error_pct
        for row in load_priors(evidence.folder)
        if (row.fitted, row.class_) == ("no", "time")
    }
    chosen = time_pct.pop(CHOSEN)
    assert len(time_pct) == N_SHIFTED
    assert all(error > 2 * chosen for error in time_pct.values())


def test_file_is_read_back(tmp_path):
    rows = [
        PriorRow(CHOSEN, fitted, SEED, class_, 3, 6.25)
        for fitted in ("no", "yes")
        for class_ in GOAL_CLASSES
    ]
    write_priors(tmp_path, rows)
    assert load_priors(tmp_path) == rows
    lines = prior_lines(rows)
    assert lines[1].split() == [*["as", "chosen,", "nothing", "fitted"], *["6.2", "%", "6.2", "%"]]
    text = (tmp_path / FILE).read_text("utf-8")
    (tmp_path / FILE).write_text(text.replace("6.25", "much", 1), "utf-8")
    with pytest.raises(ConfigError, match=re.escape("priors.csv, line 2")):
        load_priors(tmp_path)
