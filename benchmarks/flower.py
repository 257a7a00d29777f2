"""Rounds of real Flower on four boards that are control groups of this machine.

Four SuperNodes in a network namespace of their own train a small network; quotas of CPU time are
their power modes. Predicted fits and ends against measured ones, while one board slows down, one
throttles and the ClientApp of one is killed. A test uses `run_fleet`, too.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.environments import environment
from benchmarks.federated import quotas
from benchmarks.results import REPOSITORY, Budget, Result, Row, at_most
from epochwatt.errors import EpochwattError

TABLE = REPOSITORY / "benchmarks/tables/federated/rounds.csv"
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
ROUNDS, WARM_UP = 21, 1
FITS_CPU_S = {"a": 4.5, "b": 6.0, "c": 9.0, "d": 5.0}  # the longest takes 20 s in its fastest mode


@dataclass(frozen=True)
class FleetRun:
    """What a run of the fleet left."""

    rounds: pd.DataFrame  # the log of `PlannedRounds`
    found: dict[str, Any]
    logs: str


def why_not() -> str:
    """Return why no such fleet can be made here; empty: it can."""
    if os.geteuid() != 0:
        return "control groups of CPU time and network namespaces need root"
    if not shutil.which("unshare") or not shutil.which("ip"):
        return "there is no `unshare` or no `ip`"
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"namespaces are not permitted: {tried.stderr.strip()}"
    group = quotas.Group(quotas.root() / f"epochwatt-try-{os.getpid()}")
    try:
        group.make()
        try:
            group.share = 0.5
        finally:
            group.remove()
    except OSError as error:
        return f"control groups of CPU time are not permitted: {error}"
    return ""


def run_fleet(timeout_s: float, **settings: Any) -> FleetRun:
    """Run rounds of the fleet; EpochwattError: it cannot be made, or Flower failed.

    Parameters
    ----------
    rounds, patience_s : as of `PlannedRounds`
    fit_cpu_s : CPU time of each board's fit
    speeds : of boards whose hardware is slower than this machine's, a share
    events : what happens in the middle of fits (`federated.fleet.act`)
    is_compared : whether the weights are compared with plain FedAvg, which trains all of it again
    """
    if why := why_not():
        raise EpochwattError(why)
    python = environment("flower")
    from sklearn.datasets import load_digits

    group = f"epochwatt-fleet-{os.getpid()}"
    defaults = {"speeds": {}, "events": [], "patience_s": None, "is_compared": True}
    settings = {**defaults, "group": group, **settings}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        digits = load_digits()
        images = (digits.data / 16).astype("float32")
        np.savez(folder / "digits.npz", images=images, labels=digits.target)
        (folder / "settings.json").write_text(json.dumps(settings))
        try:
            done = subprocess.run(
                [*NAMESPACES, python, "-m", "benchmarks.federated.fleet", folder],
                cwd=REPOSITORY,
                env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'src'}"},
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
            said = done.stderr
        except subprocess.TimeoutExpired:
            said = f"it has not ended after {timeout_s:g} s"
        finally:
            _remove_groups(quotas.root() / group)
        logs = "\n".join(
            f"== {path.relative_to(folder)}\n{path.read_text('utf-8', 'replace')}"
            for path in sorted(folder.rglob("*log"))
        )
        try:
            found = json.loads((folder / "found.json").read_text())
            rounds = pd.read_csv(folder / "rounds.csv")
        except OSError:
            raise EpochwattError(f"the fleet made no rounds: {said[-3000:]}\n{logs}") from None
    if rounds["round"].max() < settings["rounds"]:
        raise EpochwattError(f"the fleet ended after round {rounds['round'].max()}\n{logs}")
    return FleetRun(rounds, found, logs)


def _remove_groups(path: Path) -> None:
    """Remove control groups from the innermost, once their killed processes are gone."""
    until_s = time.monotonic() + 10
    while path.exists() and time.monotonic() < until_s:
        for folder, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        time.sleep(0.05)


def run(quick: bool = False) -> Result:
    """Run the rounds; predicted against measured fits and ends, %."""
    if quick:
        options: dict[str, Any] = {
            "rounds": 3,
            "fit_cpu_s": {name: seconds / 9 for name, seconds in FITS_CPU_S.items()},
        }
    else:
        options = {
            "rounds": ROUNDS,
            "fit_cpu_s": FITS_CPU_S,
            "is_compared": False,
            "events": [
                {"round": 8, "board": "b", "what": "slow", "speed": 0.7, "after_s": 8},
                {"round": 12, "board": "d", "what": "kill", "after_s": 8},
                {"round": 16, "board": "a", "what": "throttle", "speed": 0.6, "after_s": 8},
            ],
        }
    fleet = run_fleet(60 + 90 * options["rounds"], **options)
    rounds, events = fleet.rounds, options.get("events", [])
    planned = rounds[rounds["planned_fit_s"].notna() & rounds["fit_s"].notna()]
    calm = planned[~planned["round"].isin(event["round"] for event in events)]
    ends = calm.groupby("round")[["planned_round_s", "round_s"]].first()
    speeds = calm["fit_s"] / calm["planned_fit_s"]
    medians = speeds.groupby(calm["round"]).transform("median")
    spread_pct = calm.groupby("round")["end_s"].agg(
        lambda ends_s: 100 * (1 - ends_s.min() / ends_s.max())
    )
    told_j = rounds.groupby("board")["energy_j"].sum()
    told_pct = 100 * told_j / pd.Series(fleet.found["planted_j"])
    rows = [
        _errors("fits, |measured / planned - 1|", calm["fit_s"], calm["planned_fit_s"], at_most(5)),
        _errors(
            "fits, beside the median of the round: without the machine's own drift", speeds, medians
        ),
        _errors("ends of rounds, the same", ends["round_s"], ends["planned_round_s"], at_most(10)),
        _errors("energy of fits, the same", calm["energy_j"], calm["planned_fit_j"]),
        Row("ends of boards, first to last of a round", spread_pct.tolist(), "%", 1),
        Row(
            "a round without its fits: Flower's own time",
            (calm["end_s"] - calm["fit_s"]).tolist(),
            "s",
            1,
        ),
        Row(
            "energy of a board's fits, of what its counter counted in all",
            told_pct.tolist(),
            "%",
            1,
            at_most(100),
        ),
    ]
    if not quick:
        slowed = {(event["round"] + 1, event["board"]) for event in events if "speed" in event}
        after = calm[[key in slowed for key in zip(calm["round"], calm["board"], strict=True)]]
        words = "fits after one that slowed in its middle, |measured / planned - 1|"
        rows.append(_errors(words, after["fit_s"], after["planned_fit_s"]))
        restored = "mode of a killed ClientApp, until it is put back"
        rows.append(Row(restored, [fleet.found["restored_s"]], "s", 2, at_most(5)))
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        rounds.drop(columns="node").to_csv(TABLE, index=False, float_format="%.4g")
    return Result(rows, fleet.found)


def _errors(
    what: str, measured: pd.Series, planned: pd.Series, budget: Budget | None = None
) -> Row:
    errors_pct = (100 * (measured / planned - 1).abs()).dropna()
    return Row(what, errors_pct.tolist(), "%", 1, budget)
