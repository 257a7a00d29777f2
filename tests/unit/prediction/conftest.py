"""Planted worlds under the paper's power modes, a board's tables, measured tables of others."""

import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks import measured
from epochwatt import columns
from epochwatt.board.device.kinds import KINDS
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.evaluation.fit_models import fit_models
from epochwatt.prediction.models.features import TIME, design
from epochwatt.prediction.recommend.board_tables import board_of_kind
from epochwatt.prediction.selection.choose_power_modes import choose_power_modes
from epochwatt.tables import read_cells

# AGX Xavier's own steps nearest to modes a to j of SIGMETRICS 2023, Table 3
NAMED = {
    "a": Mode(4, 1190.4, 675.75, 1331.2),
    "b": Mode(8, 1190.4, 675.75, 1331.2),
    "c": Mode(8, 1190.4, 905.25, 1331.2),
    "d": Mode(8, 1190.4, 905.25, 1600),
    "e": Mode(8, 2112, 905.25, 1600),
    "f": Mode(2, 2112, 905.25, 1600),
    "g": Mode(8, 2265.6, 1377, 2133),
    "h": Mode(8, 2265.6, 1377, 1065.6),
    "i": Mode(8, 2265.6, 1377, 1331.2),
    "j": Mode(8, 2265.6, 1377, 1600),
}


@pytest.fixture(scope="session")
def named():
    return NAMED


@pytest.fixture(scope="session")
def modes():
    return tuple(NAMED.values())


@pytest.fixture(scope="session")
def efij():
    return tuple(NAMED[name] for name in "efij")


@pytest.fixture(scope="session")
def agx():
    return board_of_kind(KINDS["agx_xavier"])


@pytest.fixture(scope="session")
def plant():
    """Return a function: shares of `terms` -> observations of a world of just these shapes."""

    def call(shares, terms=TIME, deviation=0.0, seed=0, whole=300.0, power_w=None, name="planted"):
        rows = design(terms, tuple(NAMED.values()), 5)
        values = whole * (rows / rows.mean(0)) @ np.asarray(shares)
        values = values * np.exp(deviation * np.random.default_rng(seed).standard_normal(len(rows)))
        if terms == TIME:
            power = None if power_w is None else [power_w] * len(values)
            return observations_from_rows(name, tuple(NAMED.values()), values, power)
        return observations_from_rows(name, tuple(NAMED.values()), [300.0] * len(values), values)

    return call


@pytest.fixture(scope="session")
def measured_folder():
    """Tables measured by others: inference, not training."""
    return measured.FOLDER


@pytest.fixture(scope="session")
def yolo(measured_folder):
    """Latency and power of AGX Xavier in its seven stock modes, as they are listed."""
    return measured.yolo(measured_folder)


@pytest.fixture(scope="session")
def coverage():
    """Return a function: how many test modes of splits the intervals of a fit hold, of how many."""

    def count(fit, observations, splits):
        held = []
        for train, test in splits:
            predictor, rows = fit(observations.only(train)), observations.only(test).per_mode()
            low, high = predictor.interval(rows.modes)
            held += (
                (low <= rows.values(predictor.target)) & (rows.values(predictor.target) <= high)
            ).tolist()
        return sum(held), len(held)

    return count


# modes of a made-up board, in which cores never differ: four of them fix all that there is to fix
PLANTED = {
    name: Mode(8, cpu, gpu, emc)
    for name, (cpu, gpu, emc) in zip(
        "abcdefghij",
        [
            *[(1000, 500, 1000), (2000, 500, 1000), (1000, 900, 1000), (1000, 500, 1600)],
            *[(1500, 700, 1300), (2000, 900, 1600), (1500, 500, 1600), (1000, 700, 1300)],
            *[(2000, 700, 1000), (1500, 900, 1000)],
        ],
        strict=True,
    )
}
SLOPES, CONSTANT = (0.0, -0.02, -0.1, -0.05), 400.0  # s per core, MHz, MHz, MHz; s
PER_NETWORK = {"lenet": 0.1, "mobilenet": 1.0, "resnet": 1.5, "vgg11": 2.0}
ENERGY = (0.0, 1e-4, 5e-4, 2e-4, 0.005, 0.3)  # Wh per core, MHz, MHz, MHz, s; Wh


@pytest.fixture(scope="session")
def linear_world():
    """Time of a network of size 1, its constant, size of each network, energy with its constant."""
    return SLOPES, CONSTANT, PER_NETWORK, ENERGY


@pytest.fixture
def planted(tmp_path, write_epochs):
    """Return a function that writes runs of a linear world: paths of epochs.csv, run -> mode."""

    def write(networks=tuple(PER_NETWORK), letters="abcdefghij", energy=True, n_later=3, **factors):
        paths, modes = [], {}
        for network in networks:
            for letter in letters:
                mode = PLANTED[letter]
                time_s = PER_NETWORK[network] * (float(np.dot(SLOPES, mode[:4])) + CONSTANT)
                energy_wh = float(np.dot(ENERGY, [*mode[:4], time_s, 1.0]))
                both = {"energy_wh": energy_wh, "energy_paper_wh": energy_wh}
                told = {**both, "power_scope": "module"} if energy else {}
                run = f"{network}-{letter}"
                about = {**{"setup": "sigmetrics2023", "backend": "twin", "device": "agx"},
                         **{"instance": "d1", "dataset": "some", "dataset_source": "official"},
                         **{"storage": "ssd"}, **factors}  # fmt: skip
                about = columns.with_defaults({**about, "model": network, "power_mode": letter})
                epochs = [{"e2e_s": 2 * time_s}, *[{"e2e_s": time_s, **told}] * n_later]
                paths.append(write_epochs(run, about, *epochs, root=tmp_path))
                modes[run] = list(mode)
        return paths, modes

    return write


@pytest.fixture(scope="session")
def edit_rows():
    """Return a function that changes the rows of an epochs.csv, there or in a copy."""

    def edit(path, change, to=None):
        rows = read_cells(path)
        for row in rows:
            change(row)
        with open(to or path, "w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    return edit


@pytest.fixture
def beside(tmp_path, edit_rows):
    """Return a function that puts changed copies beside planted runs: paths, run -> mode, of all.

    `change` changes a row; `only` says which runs by their id, else all; `by_mhz` is added to the
    CPU clock.
    """

    def copy(paths, modes, change, only=lambda run: True, by_mhz=0):
        paths, modes = list(paths), dict(modes)
        for path in [path for path in paths if only(Path(path).parent.name)]:
            run = Path(path).parent.name
            to = tmp_path / "beside" / run / "epochs.csv"
            to.parent.mkdir(parents=True)

            def changed(row, run=run):
                row["run"] = f"{run}-beside"
                change(row)

            edit_rows(path, changed, to)
            cores, cpu_mhz, *others = modes[run]
            modes[f"{run}-beside"] = [cores, cpu_mhz + by_mhz, *others]
            paths.append(str(to))
        return paths, modes

    return copy


@pytest.fixture
def models(tmp_path):
    """Return a function that runs the three jobs that fit; gives the folder."""

    def make(paths, modes):
        folder = tmp_path / "models"
        folder.mkdir()
        choices, times = str(folder / "power_modes.json"), str(folder / "epoch_time.json")
        choose_power_modes(paths, modes, "twin", choices, str(folder / "power_modes.csv"))
        fit_models(paths, modes, choices, ("time_s",), times)
        energies = str(folder / "epoch_energy.json")
        fit_models(paths, modes, choices, ("power_w", "energy_wh"), energies)
        return folder

    return make
