"""The workflow's rules as a person names what they make, and what a run's table says in a line."""

import csv
import statistics
from collections.abc import Mapping
from pathlib import Path

from epochwatt.text import counted

OUTLOOK = "epochwatt_outlook"  # extra of the record in which the workflow says what it plans
SAYS = "epochwatt_says"  # extra of a record that the workflow wants shown as it is
TRAINING, IDLE, MODES = "train_epoch", "measure_idle", "measure_modes"
COLLECTING = "collect_run"  # after it a run is finished
MEASURING = frozenset({TRAINING, IDLE, MODES, "measure_ceilings"})  # each takes all cores
# rules that only name others: those of workflow/rules/targets.smk, and `all`
TARGETS = frozenset(
    {
        *("all", "runs", "workloads", "idle_power", "sweeps", "pairs", "rooflines", "tables"),
        *("paper_tables", "figures", "models", "sweep_scores", "powertrain", "pagoda"),
        *("fulcrum", "claims", "pages", "validation", "external"),
    }
)
# no line of their own
SILENT = TARGETS | {TRAINING, COLLECTING, "list_modes", "list_ceiling_modes"}

# Start of a rule's name -> what its jobs make, in the plural. The first that fits counts.
STAGES = {
    "count_work": "networks counted",
    "make_dataset": "data sets made",
    "simulate_run": "simulated runs",
    "simulate_sweep": "simulated sweeps",
    "measure_modes": "chunks of modes measured",
    "collect_sweep": "tables of modes",
    "measure_ceilings": "sets of ceilings measured",
    "collect_ceilings": "tables",
    "place_points": "tables",
    "simulate_ceilings": "tables",
    "fit_public_rooflines": "rooflines fitted",
    "fit_roofline": "rooflines fitted",
    "tune_modes": "tables",
    "explain_runs": "tables",
    "judge_transfer": "transfers judged",
    "collect_powertrain": "tables",
    "compare_powertrain": "tables",
    "check_table_claims": "tables",
    "simulate_schedules": "tables",
    "learn_schedules": "steps of the predictions",
    "score_schedules": "tables",
    "play_schedules": "tables",
    "summarise_schedules": "tables",
    "replan_schedules": "tables",
    "draw_": "figures",
    "simulate_idle": "sets of simulated idle powers",
    "measure_idle": "idle powers measured",
    "collect_idle": "tables",
    "collect_study": "tables",
    "compare_pairs": "tables",
    "compare_printed": "tables",
    "tabulate_": "tables",
    "split_energy": "tables",
    "plot_": "figures",
    "validate_twin": "validations of the simulation",
    "choose_power_modes": "steps of the predictions",
    "fit_epoch_": "steps of the predictions",
    "score_predictions": "steps of the predictions",
    "score_sweep": "steps of the predictions",
    "check_claims": "pages",
    "check_external": "pages",
    "show_": "pages",
    "advise_runs": "pages",
    "summarise": "pages",
}
_SINGULAR = {
    "networks counted": "network counted",
    "data sets made": "data set made",
    "sets of simulated idle powers": "set of simulated idle powers",
    "idle powers measured": "idle power measured",
    "sets of ceilings measured": "set of ceilings measured",
    "rooflines fitted": "roofline fitted",
    "transfers judged": "transfer judged",
    "chunks of modes measured": "chunk of modes measured",
    "tables of modes": "table of modes",
    "validations of the simulation": "validation of the simulation",
    "steps of the predictions": "step of the predictions",
}


def stage_of(rule: str) -> str:
    """Return what a rule's jobs make, in the plural; its name and "jobs" for an unknown rule."""
    for start, stage in STAGES.items():
        if rule.startswith(start):
            return stage
    return f"{rule} jobs"


def counted_stage(n: int, stage: str) -> str:
    """Return "1 figure", "2 figures", "1 data set made"."""
    return f"1 {_SINGULAR[stage]}" if n == 1 and stage in _SINGULAR else counted(n, stage)


def duration(seconds: float) -> str:
    """Return "42 s", "5 min 58 s" or "2 h 05 min"."""
    minutes, s = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {s:02d} s" if minutes else f"{s} s"


def run_line(title: str, table: Path) -> str:
    """Return what a finished run's `epochs.csv` says: "LeNet-5: 3 epochs, 2.9 s each, stall 28 %".

    Time, stall and energy are means over the valid epochs after the first, as in the summary; over
    all of them where there is no such epoch. Raises OSError when the table cannot be read.
    """
    with open(table, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    later = [row for row in rows if row["valid"] == "True" and int(row["epoch"]) > 0] or rows
    e2e_s = _mean(later, "e2e_s")
    parts = [counted(len(rows), "epochs"), f"{e2e_s:.3g} s each"]
    if stall_s := _mean(later, "stall_s"):
        parts.append(f"stall {100.0 * stall_s / e2e_s:.0f} %")
    if energy_wh := _mean(later, "energy_wh"):
        parts.append(f"{energy_wh:.3g} Wh each")
    invalid = sum(row["valid"] != "True" for row in rows)
    parts += [f"{invalid} not valid"] if invalid else []
    return f"{title}: {', '.join(parts)}"


def _mean(rows: list[dict[str, str]], column: str) -> float:
    values = [float(row[column]) for row in rows if row.get(column)]
    return statistics.fmean(values) if values else 0.0


def wildcards_text(wildcards: Mapping[str, str]) -> str:
    """Return " (run=..., first=0)", or nothing where a job has no wildcards."""
    inside = ", ".join(f"{name}={value}" for name, value in wildcards.items())
    return f" ({inside})" if inside else ""
