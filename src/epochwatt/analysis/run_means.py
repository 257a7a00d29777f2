"""Summarise time and energy per board and model, and find the settings that none beats.

From the means of each run over its valid epochs after the first. Times are compared only within a
workload: training a model, or inferring from it, on one kind of board with its data, its power seen
by one kind of sensor.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from epochwatt import columns
from epochwatt.analysis.collect_study import counted_epochs
from epochwatt.analysis.pareto import pareto_front
from epochwatt.columns import TIME_PARTS, Factors
from epochwatt.text import counted

DATA = ("dataset", "dataset_source", "dataset_scale")
WORKLOAD = ("setup", "backend", "device", "model", "task", *DATA, "power_scope")
# settings in which runs of a workload may differ, and how they are shown
SETTING = {
    "power_mode": "mode {}",
    "dvfs": "DVFS {}",
    "num_workers": "{} workers",
    "prefetch_factor": "prefetch {}",
    "batch_size": "batch {}",
    "storage": "{}",
    "cache_policy": "cache {}",
    "gpu_timing": "timing {}",
    "torch_threads": "{} torch threads",
    "precision": "{}",
    "compile": "compile {}",
    "container": "container {}",
    "epochs_per_job": "{} epochs per job",
    "seed": "seed {}",
}
MEANS = (
    *("e2e_s", "wait_s", "copy_s", *(f"{part}_s" for part in TIME_PARTS)),
    *("energy_wh", "power_mean_w"),
)


class WorkloadSummary(NamedTuple):
    """Times, energies and shares of one model on one kind of board."""

    group: Factors  # values of `WORKLOAD`
    n_runs: int  # with a valid epoch after the first
    e2e_s: tuple[float, float]  # least and most mean of a run; None: there is none
    energy_wh: tuple[float, float] | None
    power_w: tuple[float, float] | None
    shares: dict[str, float]  # part -> share of E2E; mean over the runs, each counted once


class Choice(NamedTuple):
    """A setting that no other of its workload beats on its unit."""

    group: Factors  # values of `WORKLOAD`, and `instance`
    setting: str  # what it is set to, of what differs between the runs
    e2e_s: float
    energy_wh: float | None  # None: it was not measured, and the setting is the fastest
    n_runs: int  # that it was compared with, itself among them


def setting_words(row: Mapping[str, str]) -> str:
    """Return what a row of runs.csv is set to, in words: workers, batch, medium, mode.

    A loop of one's own may not tell workers and batch.
    """
    words = [counted(int(row["num_workers"]), "workers")] if row["num_workers"] else []
    if row["batch_size"]:
        words.append(SETTING["batch_size"].format(row["batch_size"]))
    words.append(row["storage"])
    if row["power_mode"] != "asis":
        words.append(SETTING["power_mode"].format(row["power_mode"]))
    return ", ".join(words)


def run_means(epochs: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run: factors, `power_scope`, `n_epochs` and `MEANS`.

    A run without a valid epoch after the first has none.
    """
    runs = counted_epochs(epochs).groupby("run", sort=False)
    means = runs[[*columns.FACTOR_NAMES, "power_scope"]].first()
    return means.join(runs[list(MEANS)].mean()).assign(n_epochs=runs.size()).reset_index()


def workloads(means: pd.DataFrame) -> list[WorkloadSummary]:
    """Return where time and energy go, for each workload."""
    summaries = []
    for group, rows in means.groupby([*WORKLOAD], sort=False):
        shares = {part: float((rows[f"{part}_s"] / rows.e2e_s).mean()) for part in TIME_PARTS}
        e2e_s, energy_wh, power_w = (
            (float(told.min()), float(told.max())) if len(told) else None
            for told in (rows[name].dropna() for name in ("e2e_s", "energy_wh", "power_mean_w"))
        )
        assert e2e_s is not None
        named = dict(zip(WORKLOAD, group, strict=True))
        summaries.append(WorkloadSummary(named, len(rows), e2e_s, energy_wh, power_w, shares))
    return summaries


def best_settings(means: pd.DataFrame) -> list[Choice]:
    """Return the settings that none beats, for each workload and unit with two runs to compare.

    Time against energy (`pareto_front`) of the runs with energy; where there is none, time alone.
    """
    choices = []
    names = (*WORKLOAD, "instance")
    for group, rows in means.groupby([*names], sort=False):
        rated = rows[rows.energy_wh.notna()]
        compared = rows if rated.empty else rated
        if len(compared) < 2:
            continue
        named = [factor for factor in SETTING if rows[factor].nunique() > 1]
        energies = np.zeros(len(rows)) if rated.empty else rated.energy_wh.to_numpy(float)
        for place in pareto_front(compared.e2e_s.to_numpy(float), energies):
            run = compared.iloc[int(place)]
            # there is no prefetch factor without workers
            words = [
                SETTING[factor].format(run[factor]) for factor in named if pd.notna(run[factor])
            ]
            setting = re.sub(r"\b1 (worker|torch thread|epoch)s\b", r"1 \1", ", ".join(words))
            energy_wh = None if rated.empty else float(run.energy_wh)
            told = (setting or "repeated", float(run.e2e_s), energy_wh, len(compared))
            choices.append(Choice(dict(zip(names, group, strict=True)), *told))
    return choices
