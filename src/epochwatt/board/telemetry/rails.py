"""Add up a board's rails to the power of its module (board side: Python 3.6 grammar).

Some rails hang below others, so the sum of all of them counts a part twice. `device.kinds` has, for
each kind, which rail feeds which, what the total is made of, and whether it is the module's power
or that of module and carrier board. A board or a rail that it
does not know gives no total, and the record says why.
"""

from typing import Dict, List, Optional, Sequence, Tuple

from epochwatt.board.device.kinds import KINDS
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.source import column_names

TOTALS = {"module": "power_module_w", "board": "power_board_w"}  # by power scope
NOT_CONNECTED = "NC"  # the label of a channel that measures nothing

# How far a rail may lie above the one that feeds it. One step of the sensor is up to 0.04 W (40 uV
# on 5 mOhm at 5 V), and the rails of a reading are not converted at one moment.
NOISE_W, NOISE_SHARE = 0.2, 0.05
BELOW_ZERO_W = 0.5  # three steps of the coarsest sensor seen, AGX Xavier's 0.155 W: an idle rail


def is_connected(label: str) -> bool:
    """Say whether a channel's label names a rail."""
    return label.strip().upper() not in ("", NOT_CONNECTED)


class ModulePower:
    """The module's power out of a fixed list of rails; each reading is checked on the way.

    Readings will come in the order of `labels`, the rails of a board of that `kind`.

    `columns`: one per rail, and the total last where there is one
    `scope`: whose power the total is, a key of `TOTALS`
    `total`: its column or None
    `rule`: how the total is made, as a sentence; empty where there is none
    `no_total`: why there is none; None where there is one
    `n_contradictions`: readings in which a rail was below one that it feeds
    `contradiction`: the first of them, in words
    """

    def __init__(self, kind: str, labels: Sequence[str]) -> None:
        self._labels = tuple(labels)
        self._board = KINDS.get(kind)
        self.no_total = _why_no_total(kind, self._labels)
        self.scope = self._board.scope if self._board is not None else "module"
        self.total = TOTALS[self.scope] if self.no_total is None else None
        rail_columns = column_names("rail", self._labels, "w")
        self.columns = rail_columns + ((self.total,) if self.total else ())
        self.rule = "" if self._board is None or self.no_total else self._board.total_rule
        rails = self._board.rails if self._board is not None else ()
        index = {label: n for n, label in enumerate(self._labels)}
        self._parts = tuple(index[rail.label] for rail in rails if self.total and not rail.parent)
        self._pairs = tuple(
            (index[rail.parent], index[rail.label])
            for rail in rails
            if rail.parent in index and rail.label in index
        )
        self.start()

    def start(self) -> None:
        """Count contradictions from zero."""
        self.n_contradictions = 0
        self.contradiction: Optional[str] = None

    def row(self, watts: List[float]) -> List[float]:
        """Append the total to a reading of the rails, W; count contradictions.

        Without a total, `watts` is returned as it is. A rail without a reading is NaN, and so is a
        total that needs it. Nothing feeds power back: where a rail is below zero by more than noise
        (no answer), the total is that negative value.
        """
        for above, below in self._pairs:  # indices of a rail and of one that it feeds
            if watts[below] > watts[above] * (1.0 + NOISE_SHARE) + NOISE_W:
                self.n_contradictions += 1
                self.contradiction = self.contradiction or (
                    f"{self._labels[above]} shows {watts[above]:.3f} W, and {self._labels[below]}, "
                    f"which hangs below it, {watts[below]:.3f} W: "
                    "the labels may be on the wrong channels"
                )
                break
        if not self._parts:
            return watts
        parts = [watts[n] for n in self._parts]
        lowest = min(parts)
        total = lowest if lowest < -BELOW_ZERO_W else sum(parts)
        return watts + [total]

    def parts(self) -> Dict[str, str]:
        """Return the rails that make up the total, label -> column; none where there is none."""
        return {self._labels[n]: self.columns[n] for n in self._parts}

    def settings(self) -> Document:
        """Return the rule, its source and what was found wrong, for the record."""
        board = self._board
        return {
            "rails": list(self._labels),
            "total_rule": self.rule or None,
            "total_of": [self._labels[n] for n in self._parts],
            "no_total": self.no_total,
            "not_seen": board.not_seen if board is not None else None,
            "rule_source": board.rails_source if board is not None else None,
            "contradictions": self.n_contradictions,
            "contradiction": self.contradiction,
        }


def _why_no_total(kind: str, labels: Tuple[str, ...]) -> Optional[str]:
    """Return why the rails do not add up to the module's power; None where they do.

    A rail that the table does not know matters only where rails are added: it may be a part that is
    missing from the sum, or one that is in it already. Below an input rail it changes nothing, for
    whatever it feeds, the input feeds it.
    """
    board, present = KINDS.get(kind), "; found: " + (", ".join(labels) or "none")
    if board is None:
        return "the rails of this board ({}) are not known".format(kind or "none") + present
    if not board.total_rule:
        return f"which rails add up to the power of a {board.title} is not known" + present
    roots = [rail.label for rail in board.rails if rail.parent is None]
    missing = ", ".join(label for label in roots if label not in labels)
    if missing:
        return f"no reading of {missing}, which is a part of the {kind}'s total" + present
    twice = ", ".join(sorted({label for label in roots if labels.count(label) > 1}))
    if twice:
        return "more than one channel is labelled " + twice
    in_table = {rail.label for rail in board.rails}
    strange = ", ".join(label for label in labels if label not in in_table)
    if strange and len(roots) > 1:
        return f"the table of rails does not know {strange}: it may be a part of the sum"
    return None
