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
    """A setting on the Pareto front of its workload and unit."""

    group: Factors  # values of `WORKLOAD`, and `instance`
    setting: str  # what it is set to, of what differs between the runs
    e2e_s: float
    energy_wh: float | None  # None: it was not measured, and the setting is the fastest
    n_runs: int  # that it was compared with, itself among them


def setting_words(row: Mapping[str, str]) -> str:
    """Return the settings of a row of runs.csv in words: workers, batch, medium, mode.

    Workers and batch may be empty: a user's own loop need not tell them.
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
    """Return the ranges of time and energy and the shares of time of each workload."""
    summaries = []
    for group, rows in means.groupby([*WORKLOAD], sort=False):
        shares = {part: float((rows[f"{part}_s"] / rows.e2e_s).mean()) for part in TIME_PARTS}
        e2e_s, energy_wh, power_w = (
            (float(means.min()), float(means.max())) if len(means) else None
            for means in (rows[name].dropna() for name in ("e2e_s", "energy_wh", "power_mean_w"))
        )
        assert e2e_s is not None
        workload = dict(zip(WORKLOAD, group, strict=True))
        summaries.append(WorkloadSummary(workload, len(rows), e2e_s, energy_wh, power_w, shares))
    return summaries


def best_settings(means: pd.DataFrame) -> list[Choice]:
    """Return the Pareto front of time and energy of each workload and unit with two runs or more.

    Only runs with energy are compared; where none has it, the fastest run is returned.
    """
    choices = []
    names = (*WORKLOAD, "instance")
    for group, rows in means.groupby([*names], sort=False):
        with_energy = rows[rows.energy_wh.notna()]
        has_energy = not with_energy.empty
        compared = with_energy if has_energy else rows
        if len(compared) < 2:
            continue
        varied = [factor for factor in SETTING if rows[factor].nunique() > 1]
        energies = compared.energy_wh.to_numpy(float) if has_energy else np.zeros(len(rows))
        for index in pareto_front(compared.e2e_s.to_numpy(float), energies):
            run = compared.iloc[int(index)]
            # there is no prefetch factor without workers
            words = [
                SETTING[factor].format(run[factor]) for factor in varied if pd.notna(run[factor])
            ]
            setting = re.sub(r"\b1 (worker|torch thread|epoch)s\b", r"1 \1", ", ".join(words))
            choices.append(
                Choice(
                    group=dict(zip(names, group, strict=True)),
                    setting=setting or "repeated",
                    e2e_s=float(run.e2e_s),
                    energy_wh=float(run.energy_wh) if has_energy else None,
                    n_runs=len(compared),
                )
            )
    return choices
