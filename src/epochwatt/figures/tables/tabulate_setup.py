"""Write tables 1 to 3: boards, networks and power modes, as published and as they are here.

Source: SIGMETRICS 2023, sections 4 and 5.6. The published values are in config/published/table1.csv
to table3.csv. The tables compare them with the simulated boards and the studies, and list for each
power mode the clock steps that its nominal clocks mean on that board.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.board.device.frequencies import resolve
from epochwatt.board.device.kinds import KINDS, Kind
from epochwatt.columns import CLOCKS
from epochwatt.study.devices import Devices
from epochwatt.tables import read_table
from epochwatt.templates import save_tables
from epochwatt.twin.boards import load_boards, load_samples

PUBLISHED, HERE, STEPS = "published", "here", "steps of the board"  # source of a row
BOARDS = ("nano", "nx", "agx", "orin")  # in the order of Table 1
HEADS = {  # of the pages' columns
    **{"parameters_m": "parameters (M)", "mflop": "multiply-adds (M)"},
    **{"agx": "AGX", "nx": "NX", "nano": "Nano", "orin": "Orin"},
}
STEP_HEADS = {
    **{"cpu_mhz": "CPU step (MHz)", "gpu_mhz": "GPU step (MHz)"},
    **{"emc_mhz": "memory step (MHz)"},
}
MODE_ROWS = (PUBLISHED, HERE, STEPS)  # of each power mode
FIGURES, WHOLE = 4, 1000.0  # of numbers on a page: how many figures, and from where on whole ones
FITS = ("agx", "nx", "nano")  # columns of Table 2

Rows = list[dict[str, Any]]


def write(config: str, workloads: Iterable[str], paths: Sequence[str]) -> None:
    """Write table1, table2 and table3, each as CSV and as a page."""
    at = Path(config)
    boards_stem, networks_stem, modes_stem = (path.removesuffix(".csv") for path in paths)
    board_rows, network_rows, mode_rows = (
        boards(at),
        networks(at, map(Path, workloads)),
        power_modes(at),
    )
    save_tables(
        boards_stem,
        "Table 1: boards",
        ["Here: what the simulated boards are made of (config/twin/boards.yaml)."],
        board_rows,
        [renamed(board_rows)],
    )
    save_tables(
        networks_stem,
        "Table 2: networks and data sets",
        [
            "Here: millions of parameters, and of multiply-adds of a sample's forward pass, "
            "counted kernel by kernel; data sets of config/twin/samples.yaml; which boards a "
            "network fits on by config/devices/, after the paper. The paper prints multiply-adds "
            "as FLOPs, and mixes variants of the networks: see the notes. Layers, memory and the "
            "mini-batch size are printed alone.",
            *not_counted(network_rows),
        ],
        network_rows,
        [renamed(network_rows)],
    )
    save_tables(
        modes_stem,
        "Table 3: power modes",
        [
            "The steps are those of the board's own clock tables that the nominal clocks mean. "
            "The nominal clocks are the paper's; where config/devices/ has others, they stand in "
            "brackets."
        ],
        mode_rows,
        [side_by_side(mode_rows)],
    )


def renamed(rows: Rows) -> Rows:
    """Return rows with the headings and in the numbers of the page."""
    return [{HEADS.get(name, name): _short(value) for name, value in row.items()} for row in rows]


def _short(value: Any) -> Any:
    """Return a number to four figures, at least whole; anything else as it is."""
    if not isinstance(value, float):
        return value
    return f"{value:.0f}" if value >= WHOLE else f"{value:.{FIGURES}g}"


def not_counted(rows: Rows) -> list[str]:
    """Return a sentence on the networks whose row here has no counts."""
    names = [r["model"] for r in rows if r["source"] == HERE and "parameters_m" not in r]
    if not names:
        return []
    return [f"Not counted here: {', '.join(names)}, since no simulated run of it is selected."]


def side_by_side(rows: Rows) -> Rows:
    """Return a row of the page for each power mode: nominal clocks, then the board's steps."""
    shown = []
    for n in range(0, len(rows), len(MODE_ROWS)):
        published, here, steps = rows[n : n + len(MODE_ROWS)]
        row: dict[str, Any] = {"device": published["device"], "mode": published["power_mode"]}
        for name in CLOCKS:
            same = float(published[name]) == float(here[name])
            other = "" if same else f" ({here[name]:g})"
            row[HEADS.get(name, name)] = f"{published[name]}{other}"
        row |= {STEP_HEADS[name]: steps[name] for name in STEP_HEADS}
        shown.append(row)
    return shown


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
