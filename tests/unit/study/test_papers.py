"""The grids of the two papers in config/studies.yaml: row by row, and how many there are."""

from collections import Counter
from pathlib import Path

import pytest

from epochwatt.study.config import Study
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.expand import load_table
from epochwatt.study.selection import STUDIES
from epochwatt.tables import read_cells

PUBLISHED = Path(__file__).resolve().parents[2] / "data/published"

# study -> rows of its own, and epochs; rows that two studies share count in both
ROWS = {
    "sigmetrics-pipeline": (30, 6),
    "sigmetrics-storage": (22, 6),
    "sigmetrics-cache-dropped": (2, 6),
    "sigmetrics-batch-size": (24, 6),
    "sigmetrics-variability-agx": (5, 150),
    "sigmetrics-variability-nx": (5, 95),
    "sigmetrics-variability-nano": (5, 670),
    "sigmetrics-dvfs": (6, 6),
    "sigmetrics-power-modes": (49, 6),
    "sigmetrics-prediction": (10, 6),
    "sigmetrics-orin": (3, 6),
    "hipcw-pipeline": (24, 3),
    "hipcw-scale": (16, 3),
}
KEY = (
    *("setup", "device", "instance", "model", "dataset", "dataset_scale", "storage"),
    *("num_workers", "prefetch_factor", "batch_size", "power_mode", "dvfs", "cache_policy"),
)
MODES = {"custom(gpu_mhz=114.75)": "gpu114"}


@pytest.fixture(scope="module")
def runs(request):
    """All runs of `studies: paper`, wherever they can be measured."""
    table = load_table({"studies": "paper"}, request.config.rootpath)
    assert table.excluded == []
    return [*table.runs.values(), *(run for run, _ in table.elsewhere)]


@pytest.fixture(scope="module")
def simulated(request):
    """All runs of `studies: simulated`."""
    table = load_table({"studies": "simulated"}, request.config.rootpath)
    assert (table.excluded, table.elsewhere) == ([], [])
    return list(table.runs.values())


def read(name):
    return read_cells(PUBLISHED / name)


def test_every_study_has_its_rows_and_epochs(runs, pytestconfig):
    counts = Counter(study for run in runs for study in run.studies)
    assert counts == {study: n_rows for study, (n_rows, _) in ROWS.items()}
    studies = read_rows(Study, pytestconfig.rootpath / STUDIES)
    assert {name: studies[name].epochs for name in ROWS} == {n: e for n, (_, e) in ROWS.items()}


def as_published(row):
    """Return the key of a row of grid.csv, in our words."""
    words = {
        **row,
        "setup": row["paper"],
        "power_mode": MODES.get(row["power_mode"], row["power_mode"]),
        "cache_policy": {"yes": "dropped", "no": "kept"}[row["drop_cache_each_epoch"]],
        "dataset_scale": float(row["dataset_scale"]),
        "prefetch_factor": int(row["prefetch_factor"]) if row["prefetch_factor"] else None,
        **{key: int(row[key]) for key in ("num_workers", "batch_size")},
    }
    return tuple(words[key] for key in KEY)


def test_the_twin_has_the_same_rows(runs, simulated):
    """Factors, epochs and studies are those of the measured runs; ids and hashes are its own."""
    assert [(run.epochs, run.studies) for run in simulated] == [
        (run.epochs, run.studies) for run in runs
    ]
    for ours, measured in zip(simulated, runs, strict=True):
        assert ours.factors == {**measured.factors, "backend": "twin"}
        assert ours.id.startswith("twin-")
        assert (ours.parts, ours.receipts, ours.here) == ([], [], True)
    assert not {run.id for run in simulated} & {run.id for run in runs}


def test_rows_are_those_of_the_published_grid(runs):
    wanted = {}
    for row in read("grid.csv"):
        key = as_published(row)
        wanted[key] = max(wanted.get(key, 0), int(row["n_epochs"]))
    found = {tuple(run.factors[key] for key in KEY): run.epochs for run in runs}
    assert len(wanted) == 189
    assert found.keys() - wanted.keys() == set()
    assert wanted.keys() - found.keys() == set()
    assert found == wanted


def test_power_modes_are_those_of_the_paper(pytestconfig):
    devices = Devices(pytestconfig.rootpath)
    names = {"cores": "cpu_cores", **{f"{n}_mhz": f"{n}_mhz" for n in ("cpu", "gpu", "emc")}}
    rows = read("power_modes.csv")
    for row in rows:
        mode = devices.get(row["device"], "the test").power_modes[
            MODES.get(row["label"], row["label"])
        ]
        told = mode.model_dump(exclude_none=True)
        assert told == {ours: float(row[theirs]) for ours, theirs in names.items()}, row["id"]
    listed = Counter(row["device"] for row in rows)
    assert listed == {d: len(devices.get(d, "the test").power_modes) for d in listed}
