"""Which published numbers a fit of the simulated boards may see.

Those of the main paper that a simulation can be judged on and says something to. HiPCW 2021
contradicts the main paper and is never fitted.
"""

from collections.abc import Mapping

from epochwatt.study.folds import Judged
from epochwatt.study.published import PAPERS, Measurement, Published, Relation
from epochwatt.twin.observe import QUANTITIES

ALSO_SEEN = ("n_epochs_in_15h",)  # counts are not judged, but these are times in other words
NEVER_SEEN = {"RS5.1.7-06": "Orin rests on its data sheet alone"}


def seen_by_fit(published: Published, rows: Mapping[str, Judged]) -> list[Measurement | Relation]:
    """Return the numbers, in the order of the paper.

    Parameters
    ----------
    rows : how each published number is judged (`folds.judged`)
    """
    return [
        fact
        for fact in published.facts().values()
        if fact.paper == PAPERS[0]
        and (rows[fact.id].is_simulable or fact.metric in ALSO_SEEN)
        and (fact.metric in QUANTITIES or getattr(fact, "kind", "") == "idle")
        and fact.id not in NEVER_SEEN
    ]
