"""The papers' printed numbers as a table of numbers: predicates are checked on them."""

from collections import defaultdict

from epochwatt.claims.number_sources import KEY, EpochTable, words
from epochwatt.claims.tolerances import PRINTED
from epochwatt.claims.verdict import NotEvaluable, Percentage

QUALIFIERS = ("exact", "approx", "less_than", "at_most", "at_least")  # the best first
JUST_INSIDE = 1e-9
PRINTED_KEYS = (*(PRINTED.get(name, name) for name in KEY[1:]), "epoch")


class PublishedTable(EpochTable):
    """Printed values of the papers (measurements.csv), as if they were measured."""

    def __init__(self, measurements):
        super().__init__()
        self._printed = defaultdict(list)
        for fact in measurements:
            for run in fact.runs:
                self._printed[self._key(fact.paper, fact.metric, run)].append(fact)

    @staticmethod
    def _key(paper, metric, config):
        return (paper, metric, *(config.get(key) for key in PRINTED_KEYS))

    def number(self, metric, factors, epoch):
        """Return the printed value; of several an exact one; of a bound a value just inside it."""
        config = {PRINTED.get(name, name): value for name, value in factors.items()}
        config["epoch"] = epoch
        printed = self._printed.get(self._key(factors["setup"], metric, config))
        if not printed:
            raise NotEvaluable(f"a printed {metric} of {words(factors)}, epochs {epoch}")
        best = min(printed, key=lambda one: QUALIFIERS.index(one.qualifier))
        self.inputs.add(best.id)
        value = best.value * (1 - JUST_INSIDE if best.qualifier == "less_than" else 1)
        return Percentage(value) if metric.endswith("_pct") else value
