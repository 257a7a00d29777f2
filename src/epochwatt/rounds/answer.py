"""Answer `epochwatt rounds`: each board's mode, what the round gains, and who may be late."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd

from epochwatt.errors import ConfigError
from epochwatt.prediction.predictor import LEVEL
from epochwatt.rounds.fleet import Member, load_fleet, members_of
from epochwatt.rounds.plan import (
    ROUNDING,
    Client,
    Objective,
    Round,
    earliest_end_s,
    energy_j,
    fixed_round,
    n_samples,
    plan_round,
)
from epochwatt.tables import write_frame
from epochwatt.text import aligned, answer_origin, counted

AIMS: dict[Objective, str] = {
    "energy": "least energy",
    "time": "earliest end",
    "energy_per_sample": "least energy per sample",
}
MOST_ROWS = 20  # boards that are printed; all are in the CSV


@dataclass(frozen=True)
class Request:
    """The options of `epochwatt rounds`; None: left open."""

    fleet: Path
    objective: Objective = "energy"
    # None: of the objective energy the end that the slowest board can reach, else any
    deadline_s: float | None = None
    max_energy_wh: float | None = None
    max_risk: float | None = None  # that a board ends later; None: expected times end in time


@dataclass(frozen=True)
class Answer:
    """A planned round beside the same round in the strongest modes."""

    request: Request
    members: list[Member]
    planned: Round
    strongest: Round  # every board in its strongest mode

    @property
    def latest_s(self) -> float:
        """Time after which a board is late: the later of deadline and planned end, s."""
        return max(self.planned.end_s, self.request.deadline_s or 0.0)

    @property
    def clients(self) -> list[Client]:
        """The boards with their choices."""
        return [member.client for member in self.members]


def find_answer(request: Request, root: Path = Path()) -> Answer:
    """Plan a round of a fleet, beside the same round in the strongest modes.

    With a risk p that any of n boards is late, each may be so with 1 - (1 - p)^(1 / n); z is its
    quantile. Raises ConfigError: a wrong fleet, a deadline or budget that no round keeps, or a risk
    that is not above 0 and up to 0.5.
    """
    members = members_of(load_fleet(request.fleet), root)
    clients = [member.client for member in members]
    z = 0.0
    if request.max_risk is not None:
        if not 0 < request.max_risk <= 0.5:
            raise ConfigError(f"a risk of {request.max_risk:g}", allowed="above 0, up to 0.5")
        n_boards = sum(client.count for client in clients)
        z = NormalDist().inv_cdf((1 - request.max_risk) ** (1 / n_boards))
    strongest = [strongest_choice(member) for member in members]
    if request.deadline_s is not None:
        latest_s = request.deadline_s
    elif request.objective == "energy":
        latest_s = earliest_end_s(clients, z)
    else:
        latest_s = math.inf
    budget_j = math.inf if request.max_energy_wh is None else 3600 * request.max_energy_wh
    planned = plan_round(clients, request.objective, latest_s, budget_j, z)
    return Answer(request, members, planned, fixed_round(clients, strongest))


def strongest_choice(member: Member) -> int:
    """Return the index of the choice with the highest clocks; ties: most mini-batches, fastest.

    How high a mode is: the sum of its parts, each relative to its highest value.
    """
    modes = np.array(member.modes, float)
    minibatches = np.array(member.minibatches)
    height = (modes / modes.max(0).clip(1e-9)).sum(1)
    return int(np.lexsort((member.client.fit_s, -minibatches, -height))[0])


def table_of(answer: Answer) -> pd.DataFrame:
    """Return a row per board, or boards that are alike: mode, end, energy, bounds, and risk.

    The logarithm of a fit's time is normal; `late`: probability that the board ends after
    `latest_s`; `end_low_s`, `end_high_s`: interval of the level `LEVEL`.
    """
    rows = []
    quantile = NormalDist().inv_cdf((1 + LEVEL) / 2)
    for member, k in zip(answer.members, answer.planned.choices, strict=True):
        client = member.client
        spread = float(np.broadcast_to(client.spread, client.fit_s.shape)[k])
        expected_s, fit_s = client.end_s()[k], client.fit_s[k]
        slack = math.log(max(answer.latest_s - client.around_s, 1e-12) / fit_s)
        # without spread the time is known: the board is late for certain, or not at all
        late = 1 - NormalDist().cdf(slack / spread) if spread else float(slack < -ROUNDING)
        rows.append(
            {
                "board": client.name,
                "boards": client.count,
                "mode": member.modes[k].of_parts(member.parts),
                "minibatches": member.minibatches[k],
                "samples": client.n_samples[k],
                "fit_s": fit_s,
                "end_s": expected_s,
                "end_low_s": client.around_s + fit_s * math.exp(-quantile * spread),
                "end_high_s": client.around_s + fit_s * math.exp(quantile * spread),
                "power_w": member.power_w[k],
                "energy_j": client.energy_j(k, answer.planned.end_s),
                "waiting_s": max(answer.planned.end_s - fit_s, 0.0),  # but for rounding
                "waiting_w": client.waiting_w[k],
                "late": late,
                "provenance": member.provenance,
                "profiled_modes": member.n_profiled,
                "measured_fits": member.n_fits,
                "times_table": member.slower,
            }
        )
    return pd.DataFrame(rows)


def waiting_j(clients: Sequence[Client], planned: Round) -> float:
    """Return the energy that boards draw outside their fits in a round, J."""
    pairs = zip(clients, planned.choices, strict=True)
    fits_j = sum(client.count * client.fit_j[k] for client, k in pairs)
    return energy_j(clients, planned) - float(fits_j)


def answer_lines(answer: Answer) -> list[str]:
    """Return the plan, what it gains over the strongest modes, and how sure it is."""
    request, clients = answer.request, answer.clients
    table = table_of(answer)
    n_boards = int(table["boards"].sum())
    origins = [answer_origin(p) for p in dict.fromkeys(table["provenance"])]
    if table["profiled_modes"].notna().any():
        origins.append("PREDICTED from a few modes")
    corrected = table[table["measured_fits"] > 0]
    if len(corrected):
        origins.append("CORRECTED by measured rounds")
    asked = [AIMS[request.objective]]
    if request.deadline_s is not None:
        asked.append(f"ends within {request.deadline_s:g} s")
    elif request.objective == "energy":
        asked.append("ends no later than the slowest board can")
    if request.max_energy_wh is not None:
        asked.append(f"at most {request.max_energy_wh:g} Wh")
    if request.max_risk is not None:
        asked.append(f"late in at most {100 * request.max_risk:g} % of rounds")
    plan_j = energy_j(clients, answer.planned)
    rows = [
        ("plan", *_outcome(answer, answer.planned)),
        ("all in the strongest mode", *_outcome(answer, answer.strongest)),
    ]
    # the strongest modes until the fit has ended, then the mode in which it waits with least power
    lowest_j = sum(
        client.count
        * (client.fit_j[k] + client.waiting_w.min() * (answer.strongest.end_s - client.fit_s[k]))
        for client, k in zip(clients, answer.strongest.choices, strict=True)
    )
    rows.append(
        (
            "strongest, lowest while waiting",
            f"{answer.strongest.end_s:.4g} s",
            f"{lowest_j / 3600:.4g} Wh",
            "",
        )
    )
    strongest_j = energy_j(clients, answer.strongest)
    lines = [
        f"{'; '.join(origins)}: a round of {counted(n_boards, 'boards')}, "
        f"{n_samples(clients, answer.planned):,.0f} samples",
        f"asked     {', '.join(asked)}",
        "",
        *aligned(rows),
        "",
    ]
    if strongest_j > plan_j:
        waiting_saved_j = waiting_j(clients, answer.strongest) - waiting_j(clients, answer.planned)
        lines.append(
            f"The plan saves {100 * (1 - plan_j / strongest_j):.3g} % of the energy of the "
            f"strongest modes; {_waiting_part(waiting_saved_j, strongest_j - plan_j)}."
        )
    late = 1 - np.prod((1 - table["late"]) ** table["boards"])
    lines.append(f"Some board ends later in {100 * late:.3g} % of such rounds.")
    if (table["end_low_s"] == table["end_high_s"]).all():
        lines[-1] = "How much fits vary is not known: spread_pct of a board says it."
    if len(corrected):
        n_fits, times = corrected["measured_fits"].sum(), corrected["times_table"]
        between = " to ".join(dict.fromkeys(f"{t:.3g}" for t in (times.min(), times.max())))
        lines.append(
            f"{counted(n_fits, 'measured fits')} of {counted(len(corrected), 'boards')} took "
            f"{between} times what tables say."
        )
    cells = [
        (
            row["board"] if row["boards"] == 1 else f"{row['board']} ({row['boards']})",
            row["mode"],
            f"{row['samples']:,.0f}",
            f"{row['end_s']:.4g}" + _bounds(row["end_low_s"], row["end_high_s"]),
            f"{row['energy_j'] / 3600:.4g}",
            f"{100 * row['waiting_s'] / answer.planned.end_s:.0f} %",
        )
        for row in table.head(MOST_ROWS).to_dict("records")
    ]
    head = ("board", "mode", "samples", f"end, s [{100 * LEVEL:g} %]", "Wh each", "not in its fit")
    lines += ["", *aligned([head, *cells])]
    if len(table) > MOST_ROWS:
        lines.append(f"... and {len(table) - MOST_ROWS} more: --csv FILE has all")
    return lines


def _outcome(answer: Answer, planned: Round) -> tuple[str, str, str]:
    """Return end, energy and share of waiting of a round as cells of a table."""
    clients = answer.clients
    total_j = energy_j(clients, planned)
    waits = 100 * waiting_j(clients, planned) / total_j
    return f"{planned.end_s:.4g} s", f"{total_j / 3600:.4g} Wh", f"{waits:.0f} % of it waiting"


def _waiting_part(waiting_saved_j: float, saved_j: float) -> str:
    """Return in words how much of a saving comes from boards that wait less or with less power."""
    if waiting_saved_j <= 0:
        return "none of it rests on what waiting boards draw"
    if waiting_saved_j >= saved_j:
        return "all of it rests on what waiting boards draw"
    return f"{100 * waiting_saved_j / saved_j:.0f} % of that rests on what waiting boards draw"


def _bounds(low: float, high: float) -> str:
    return "" if high == low else f" [{low:.4g}, {high:.4g}]"


def write_table(answer: Answer, path: Path) -> None:
    """Write a row per board. Raises RecordWriteError."""
    write_frame(path, "a plan of a round", table_of(answer))
