"""What energy is made of: planted rails of constant power, an idle board, sensors of a host."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from epochwatt.analysis.collect_study import read_epochs
from epochwatt.analysis.energy_parts import rail_parts, write_energy_parts
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.samples import write_samples

IDLE = {"backend": "host", "device": "host", "instance": "local", "power_mode": "asis"}
IDLE |= {"dvfs": "on", "state": "i", "power_scope": "module", "power_w": "9"}


def metered(scope="module", energy_wh=0.05):
    return {"energy_wh": energy_wh, "power_scope": scope}


@pytest.fixture
def table(checkout, write_epochs, tmp_path):
    """Return a function that splits the energy of one run of two later epochs."""

    def call(epoch, idle=(), scopes=(), records="nowhere"):
        run = checkout.runs[0]
        (tmp_path / "idle.csv").write_text(_csv(idle or [dict.fromkeys(IDLE, "")]))
        (tmp_path / "energy.csv").write_text(_csv(scopes or [{"run": "", "epoch": 0}]))
        epochs = write_epochs(run.id, run.factors, epoch, epoch, epoch)
        out = tmp_path / "parts.csv"
        paths = ([epochs], [str(tmp_path / "energy.csv")], str(tmp_path / "idle.csv"))
        write_energy_parts(*paths, {run.id: records}, str(out))
        return list(csv.DictReader(out.read_text("utf-8").splitlines()))

    def _csv(rows):
        lines = [list(rows[0]), *([str(v) for v in row.values()] for row in rows)]
        return "".join(",".join(line) + "\n" for line in lines)

    return call


def stack(rows, name):
    return {r["part"]: float(r["energy_wh"]) for r in rows if r["stack"] == name}


def test_constant_power_is_that_of_the_idle_board_over_the_epoch(table, monkeypatch):
    """9 W over 4 s are 0.01 Wh of 0.05."""
    monkeypatch.setattr("epochwatt.analysis.energy_parts._module_parts", lambda *_: {})
    rows = table(metered(), [IDLE])
    assert stack(rows, "constant") == pytest.approx({"constant power": 0.01, "above it": 0.04})
    assert [float(row["share_pct"]) for row in rows[:2]] == pytest.approx([20.0, 80.0])
    assert {row["n_epochs"] for row in rows} == {"2"}


@pytest.mark.parametrize(
    "change", [{"power_mode": "low"}, {"state": "ii"}, {"power_scope": "socket"}, {"dvfs": "off"}]
)
def test_an_idle_power_of_something_else_is_not_taken(change, table, monkeypatch):
    monkeypatch.setattr("epochwatt.analysis.energy_parts._module_parts", lambda *_: {})
    assert stack(table(metered(), [IDLE | change]), "constant") == {}


def test_sensors_of_a_host_stand_beside_each_other(table, checkout):
    scopes = [
        {"run": checkout.ids[0], "epoch": epoch, "power_scope": scope, "energy_wh": energy_wh}
        for epoch in (0, 1, 2)
        for scope, energy_wh in (("gpu", 0.03), ("cpu_package", 0.01))
    ]
    rows = table(metered("gpu", 0.03), scopes=scopes)
    assert stack(rows, "rails") == pytest.approx({"GPU": 0.03, "CPU package": 0.01})


def test_rails_tell_cpu_gpu_and_memory_and_the_rest_is_the_boards(checkout, measure, write_epochs):
    """Over 4 s 9 W are 0.01 Wh: the GPU 0.02, the CPU 0.01, the memory 0.005 of 0.05 Wh."""
    run = checkout.runs[0]
    t_s = np.arange(9.0, 15.5, 0.5)
    columns = ("rail_gpu_w", "rail_cpu_w", "rail_vddrq_w", "rail_cv_w", "power_module_w")
    watts = np.tile([18.0, 9.0, 4.5, 1.0, 45.0], (len(t_s), 1))
    source = {"scope": "module", "total": "power_module_w", "n_samples": len(t_s)}
    source |= {"n_negative": 0, "stuck_s": 0.0}
    source |= {"step_mean_s": 0.5, "n_failed": 0, "rows_dropped": 0}
    for epoch in range(3):
        template = measure(run, epoch, root="elsewhere", tail_s=0.0).read(epoch)
        folder = RunFolder("measured", run.id)
        folder.begin(epoch)
        attempt = folder.attempt_path(epoch)
        write_samples(attempt, "board", columns, t_s, t_s + 1.7e9, watts)
        Path(attempt, "telemetry.json").write_text(json.dumps({"sources": {"board": source}}))
        folder.finish(epoch, template.meta, template.minibatch_s)
    epochs = read_epochs([write_epochs(run.id, run.factors, *[metered()] * 3)])
    energies = rail_parts(epochs[epochs.epoch > 0], run.records, [])
    assert energies == pytest.approx({"GPU": 0.02, "CPU": 0.01, "memory": 0.005, "rest": 0.015})
