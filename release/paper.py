"""Write paper/paper.md of paper/paper.md.jinja and the tables of benchmarks/: `make paper`.

No number stands in the template: each is named here and read from a table.
"""

import json
from pathlib import Path

import jinja2
import pandas as pd

from benchmarks.bounds import AT_LEAST_95
from epochwatt.prediction.predictor import LEVEL
from epochwatt.prediction.registry import RECOMMENDED
from release.compare import DIGITS

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "benchmarks/tables"
TEMPLATE, PAPER = ROOT / "paper/paper.md.jinja", ROOT / "paper/paper.md"


def numbers() -> dict[str, object]:
    """Return name -> what the template shows: a text, or the frame of a table."""
    table = _table("instrument/one-run")
    run, goal = table["median"], table["budget"]
    bounds = _table("instrument/energy-bounds")
    covered = pd.to_numeric(bounds["covered %"], errors="coerce").dropna()  # "-": no bound at all
    worst = covered.idxmin()
    peers = _table("instrument/peers")
    signals = pd.read_csv(ROOT / "benchmarks/bounds.csv", comment="#").query("what == 'energy'")
    windows = _table("instrument/windows")["from, %"].astype(float)  # where there are bounds
    faults = _table("instrument/faults").loc["**all**"]
    left_out = _table("simulation/held-out").filter(regex="^(?!HiPCW)", axis=0)
    held_out = {of: left_out[of].str.extract(r"([\d.]+)")[0].astype(float) for of in left_out}
    takeaways = _table("simulation/take-aways").loc["SIGMETRICS 2023"]
    said = _table("prediction/real-sweeps-said").loc["public"]
    said = said[said.method == RECOMMENDED].set_index("target")
    held = _table("prediction/real-sweeps-held").query("method == @RECOMMENDED")
    replays = (
        _table("prediction/profile-replays").loc["translucence-tx1-5000"].set_index("strategy")
    )
    profile = replays.loc["profile, risk 0.1"]
    network = replays.filter(like="powertrain_cross_board", axis=0).iloc[0]
    return {
        "compute_ms": run["planted epoch, w=0: compute"],
        "planted_compute_ms": goal["planted epoch, w=0: compute"].split(" ±")[0] + " ms",
        "wait_ms": run["planted epoch, w=0: steady wait"],
        "planted_wait_ms": goal["planted epoch, w=0: steady wait"].split(" ±")[0] + " ms",
        "loop_cost": _over(run["instrumented / bare epoch, w=0"]),
        "loop_goal": _over(goal["instrumented / bare epoch, w=0"].removeprefix("<= ")),
        "peers": peers.reset_index(),
        "peers_bare": peers.loc["bare", "cost of the loop, %"].split(" [")[0] + " %",
        "bound_goal": f"{AT_LEAST_95.low:.0f} %",
        "drawn_windows": f"{signals.n.sum():,}",
        "covered": f"{covered.median():.1f} %",
        "covered_least": f"{covered.min():.1f} %",
        "worst": worst,
        "worst_void": f"{bounds.loc[worst, 'void %']} %",
        "bound_10_hz": f"{bounds.loc['INA3221, 161 ms register (3 channels)', 'mean bound %']} %",
        "bound_1_hz": f"{bounds.loc['jtop, 1 Hz, 54 ms', 'mean bound %']} %",
        "monitor_windows_held": f"{windows.min():.1f} %",
        "faults": faults["injected"],
        "faults_recovered": faults["recovered"],
        "virtual_boards": len(_table("virtual-board/checks").columns) - 1,
        "times_off": _range(held_out["times"]),
        "energies_off": _range(held_out["energies and powers"]),
        "takeaways_hold": takeaways["hold"],
        "takeaways": takeaways["take-aways"],
        "takeaways_hold_held_out": takeaways["hold held out"],
        "takeaways_held_out": takeaways["judged held out"],
        "method": RECOMMENDED,
        "comparisons": said.loc["time", "comparisons"],
        "best_of_time": said.loc["time", "among the best"],
        "best_of_power": said.loc["power", "among the best"],
        "interval_goal": f"{LEVEL:.0%}".replace("%", " %"),
        "intervals_hold": _range(held["mean, %"].astype(float)),
        "profile_runs": profile["runs"],
        "profile_regret": profile["regret, %: median / 90th"].split(" / ")[0] + " %",
        "profile_broken": f"{profile['broken, %']} %",
        "network_runs": network["runs"],
        "network_broken": f"{network['broken, %']} %",
        "digits": DIGITS,
        "gpus": sorted(
            json.loads(path.read_text("utf-8"))["gpu_check"]["details"]["card"]
            for path in (ROOT / "benchmarks/gpu").glob("*.json")
        ),
    }


def render() -> str:
    """Return the paper with the numbers of today's tables."""
    loader = jinja2.FileSystemLoader(TEMPLATE.parent)
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["markdown"] = _markdown
    return environment.get_template(TEMPLATE.name).render(numbers())


def _table(name: str) -> pd.DataFrame:
    """Read a table as text, named by its first column."""
    return pd.read_csv(TABLES / f"{name}.csv", dtype=str, index_col=0)


def _over(ratio: str) -> str:
    """Say how much a ratio is above 1."""
    return f"{(float(ratio) - 1) * 100:.1f} %"


def _range(shares: pd.Series) -> str:
    return f"{shares.min():.0f} to {shares.max():.0f} %"


def _markdown(table: pd.DataFrame) -> str:
    rows = [table.columns, ["---"] * len(table.columns), *table.fillna("").to_numpy()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    PAPER.write_text(render(), "utf-8")
