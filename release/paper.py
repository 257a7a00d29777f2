"""Write paper/paper.md of paper/paper.md.jinja and the tables of benchmarks/: `make paper`.

No number stands in the template: each is named here and read from a table.
"""

from pathlib import Path

import jinja2
import pandas as pd

from epochwatt.prediction.registry import RECOMMENDED

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "benchmarks/tables"
TEMPLATE, PAPER = ROOT / "paper/paper.md.jinja", ROOT / "paper/paper.md"


def numbers() -> dict[str, object]:
    """Return name -> what the template shows: a text, or the frame of a table."""
    run = _table("instrument/one-run")["median"]
    bounds = _table("instrument/energy-bounds")
    covered = pd.to_numeric(bounds["covered %"], errors="coerce").dropna()  # "-": no bound at all
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
    network = replays.loc["powertrain_cross_board, 50 random modes"]
    return {
        "compute_ms": run["planted epoch, w=0: compute"],
        "wait_ms": run["planted epoch, w=0: steady wait"],
        "loop_cost": f"{(float(run['instrumented / bare epoch, w=0']) - 1) * 100:.1f} %",
        "peers": _table("instrument/peers").reset_index(),
        "drawn_windows": f"{signals.n.sum():,}",
        "covered": f"{covered.median():.1f} %",
        "covered_least": f"{covered.min():.1f} %",
        "bound_10_hz": f"{bounds.loc['INA3221, 161 ms register (3 channels)', 'mean bound %']} %",
        "bound_1_hz": f"{bounds.loc['jtop, 1 Hz, 54 ms', 'mean bound %']} %",
        "monitor_windows_held": f"{windows.min():.0f} %",
        "faults": faults["injected"],
        "faults_recovered": faults["recovered"],
        "virtual_boards": len(_table("virtual-board/checks").columns) - 1,
        "times_off": _range(held_out["times"]),
        "energies_off": _range(held_out["energies and powers"]),
        "takeaways_hold": takeaways["hold"],
        "takeaways": takeaways["take-aways"],
        "method": RECOMMENDED,
        "comparisons": said.loc["time", "comparisons"],
        "best_of_time": said.loc["time", "among the best"],
        "best_of_power": said.loc["power", "among the best"],
        "intervals_hold": _range(held["mean, %"].astype(float)),
        "profile_runs": profile["runs"],
        "profile_regret": profile["regret, %: median / 90th"].split(" / ")[0] + " %",
        "profile_broken": f"{profile['broken, %']} %",
        "network_broken": f"{network['broken, %']} %",
        "gpus": sorted(path.stem for path in (ROOT / "benchmarks/gpu").glob("*.json")),
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


def _range(shares: pd.Series) -> str:
    return f"{shares.min():.0f} to {shares.max():.0f} %"


def _markdown(table: pd.DataFrame) -> str:
    rows = [table.columns, ["---"] * len(table.columns), *table.fillna("").to_numpy()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    PAPER.write_text(render(), "utf-8")
