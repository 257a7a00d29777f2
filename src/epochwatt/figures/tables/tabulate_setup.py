"""Tables 1 to 3: boards, networks and power modes, as published and as they are here.

Source: SIGMETRICS 2023, sections 4 and 5.6. The published values are in config/published/table1.csv
to table3.csv. The tables compare them with the simulated boards and the studies, and list for each
power mode the clock steps that its nominal clocks mean on that board.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.device.frequencies import resolve
from epochwatt.device.kinds import KINDS, Kind
from epochwatt.figures.tables import table_files
from epochwatt.published.tables import read_table
from epochwatt.study.devices import Devices
from epochwatt.twin.inputs.boards import load_boards
from epochwatt.twin.inputs.samples import load_samples

PUBLISHED, HERE, STEPS = "published", "here", "steps of the board"  # source of a row
BOARDS = ("nano", "nx", "agx", "orin")  # in the order of Table 1
CLOCKS = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
FITS = ("agx", "nx", "nano")  # columns of Table 2

Rows = list[dict[str, Any]]


def write(config: str, workloads: Iterable[str], paths: Sequence[str]) -> None:
    """Write table1, table2 and table3, each as CSV and as a page.

    Parameters
    ----------
    config : folder config of the checkout
    workloads : counts of the networks that are known
    paths : of the three tables; the page of each lies beside it
    """
    at = Path(config)
    boards_stem, networks_stem, modes_stem = (path.removesuffix(".csv") for path in paths)
    table_files.save(
        boards_stem,
        "Table 1: boards",
        ["Here: what the simulated boards are made of (config/twin/boards.yaml)."],
        boards(at),
    )
    table_files.save(
        networks_stem,
        "Table 2: networks and data sets",
        [
            "Here: millions of parameters, and of multiply-adds of a sample's forward pass, "
            "counted kernel by kernel; data sets of config/twin/samples.yaml; which boards a "
            "network fits on by config/devices/, after the paper. The paper prints multiply-adds "
            "as FLOPs, and mixes variants of the networks: see the notes."
        ],
        networks(at, map(Path, workloads)),
    )
    table_files.save(
        modes_stem,
        "Table 3: power modes",
        ["Here: nominal clocks of config/devices/. The steps are those of the board's own tables."],
        power_modes(at),
    )


def boards(config: Path) -> Rows:
    """Return the rows of Table 1: each feature as published, then as here where it is known."""
    simulated = load_boards(config / "twin")
    here: dict[str, dict[str, float]] = {
        "CPU cores": {name: simulated[name].cores for name in BOARDS},
        "CPU clock": {name: simulated[name].cpu_mhz[1] for name in BOARDS},
        "CUDA cores": {name: simulated[name].cuda_cores for name in BOARDS},
        "GPU clock": {name: simulated[name].gpu_mhz[1] for name in BOARDS},
        "RAM": {name: simulated[name].ram_mib / 1024 for name in BOARDS},
        "memory clock": {name: simulated[name].emc_mhz[1] for name in BOARDS},
    }
    rows: Rows = []
    for _, row in read_table(config / "published/table1.csv"):
        named = {"feature": row["feature"], "unit": row["unit"]}
        printed = {name: row[name] for name in BOARDS}
        rows.append({**named, "source": PUBLISHED, **printed, "note": row["note"]})
        if row["feature"] in here:
            rows.append({**named, "source": HERE, **here[row["feature"]]})
    return rows


def networks(config: Path, workloads: Iterable[Path]) -> Rows:
    """Return the rows of Table 2: each network as published, then as here."""
    counts = {path.stem: json.loads(path.read_text("utf-8")) for path in workloads}
    samples, devices = load_samples(config / "twin"), Devices(config.parent)
    rows: Rows = []
    for _, row in read_table(config / "published/table2.csv"):
        model = row["model"]
        data = samples[row["dataset"]]
        fits = {
            name: "no" if model in devices.get(name, "table2.csv").out_of_memory else "yes"
            for name in FITS
        }
        here: dict[str, Any] = {"model": model, "source": HERE}
        here |= _counted(counts.get(model))
        here |= {"dataset": row["dataset"], "samples": data.n_samples}
        rows.append(
            {"model": model, "source": PUBLISHED, **{k: v for k, v in row.items() if k != "model"}}
        )
        rows.append({**here, "disk_mb": data.mib * 1.048576, **fits})
    return rows


def _counted(work: Mapping[str, Any] | None) -> dict[str, float]:
    """Return millions of parameters, and of multiply-adds of a sample's forward pass."""
    if work is None:
        return {}
    kernels = work["kernels"]
    flop = zip(kernels["flops_per_sample"], kernels["phase"], strict=True)
    forward = sum(flop_per_sample for flop_per_sample, phase in flop if phase == "forward")
    return {"parameters_m": work["parameters"] / 1e6, "mflop": forward / 2e6}


def power_modes(config: Path) -> Rows:
    """Return the rows of Table 3: each mode's published clocks, ours, and the board's steps."""
    devices = Devices(config.parent)
    rows: Rows = []
    for _, row in read_table(config / "published/table3.csv"):
        device = devices.get(row["device"], "table3.csv")
        named = {"device": row["device"], "power_mode": row["power_mode"]}
        nominal = device.power_modes[row["power_mode"]].model_dump(include=set(CLOCKS))
        rows.append({**named, "source": PUBLISHED, **{name: row[name] for name in CLOCKS}})
        rows.append({**named, "source": HERE, **{name: nominal[name] for name in CLOCKS}})
        rows.append({**named, "source": STEPS, **_resolved(nominal, KINDS[device.board])})
    return rows


def _resolved(nominal: Mapping[str, float], kind: Kind) -> dict[str, float]:
    steps = {
        "cpu_mhz": [khz / 1e3 for khz in kind.cpu_khz],
        "gpu_mhz": [hz / 1e6 for hz in kind.gpu_hz],
        "emc_mhz": [hz / 1e6 for hz in kind.emc_hz],
    }
    clocks = {name: resolve(name, nominal[name], choices) for name, choices in steps.items()}
    return {"cores": nominal["cores"], **clocks}
