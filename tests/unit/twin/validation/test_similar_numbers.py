"""Numbers that ask the parameters nearly the same: left out with the take-aways near them."""

import numpy as np

from epochwatt.twin.validation.validate_twin import COSINE, NEAR, _cosines, near_folds


def test_near_folds_lose_more_than_their_takeaways_and_judge_the_same(evidence):
    found = near_folds(evidence.folds, evidence.facts, evidence.twin)
    assert found == evidence.other_folds[NEAR]
    more = 0
    for fold in found.values():
        plain = evidence.folds[fold.takeaway.removeprefix(f"{NEAR} ")]
        assert fold.ids == plain.ids
        assert fold.removed >= plain.removed
        more += len(fold.removed - plain.removed)
    assert more > 20


def test_what_is_kept_is_near_nothing_that_is_held_out(evidence):
    cosines = _cosines(evidence.facts, evidence.twin)
    place = {fact.id: i for i, fact in enumerate(evidence.facts)}
    for fold in evidence.other_folds[NEAR].values():
        own = [place[name] for name in fold.ids if name in place]
        kept = [i for name, i in place.items() if name not in fold.removed]
        if own and kept:
            assert np.abs(cosines[np.ix_(kept, own)]).max() < COSINE, fold.takeaway
