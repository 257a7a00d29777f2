"""Select the published numbers that a fit of the simulated boards may see.

Those of the main paper that a simulation can be judged on and says something to. HiPCW 2021
contradicts the main paper, so no shared parameter is fitted to it: what its set-up has of its own
alone sees its numbers (`validation/paper_setups.py`).

`epochwatt calibrate-twin` writes their ids to `config/twin/seen.csv`. Figures take them from there
(`published/folds.py`), so that no figure depends on the simulator's code.
"""

from collections.abc import Mapping
from pathlib import Path

from epochwatt.published.folds import ID, SEEN, Judged, judged
from epochwatt.published.numbers import PAPERS, Fact, Published, load_published
from epochwatt.tables import write_table
from epochwatt.twin.calibration.queries import QUANTITIES

ALSO_SEEN = ("n_epochs_in_15h",)  # counts are not judged, but these are times in other words
NEVER_SEEN = {"RS5.1.7-06": "Orin rests on its data sheet alone"}


def seen_by_fit(published: Published, rows: Mapping[str, Judged]) -> list[Fact]:
    """Return the numbers, in the order of the paper."""
    return [
        fact
        for fact in published.facts().values()
        if fact.paper == PAPERS[0]
        and (rows[fact.id].is_simulable or fact.metric in ALSO_SEEN)
        and (fact.metric in QUANTITIES or fact.kind == "idle")
        and fact.id not in NEVER_SEEN
    ]


def seen_by_setups(published: Published, rows: Mapping[str, Judged]) -> list[Fact]:
    """Return the numbers of other papers, which what their set-ups have of their own may see."""
    facts = published.facts().values()
    return [f for f in facts if f.paper != PAPERS[0] and rows[f.id].is_simulable]


def write_seen(root: Path = Path()) -> None:
    """Write seen.csv of a checkout, whole or not at all.

    Raises ConfigError: a table of published numbers is missing or wrong; RecordWriteError: the file
    cannot be written.
    """
    folder = root / "config/twin"
    evidence = load_published(root / "config/published"), judged(folder)
    facts = seen_by_fit(*evidence) + seen_by_setups(*evidence)
    write_table(folder / SEEN, "what the fit sees", [ID], [[fact.id] for fact in facts])
