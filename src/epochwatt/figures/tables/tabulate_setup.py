"""Write tables 1 to 3: boards, networks and power modes, as published and as they are here.

Source: SIGMETRICS 2023, sections 4 and 5.6. The published values are in config/published/table1.csv
to table3.csv. The tables compare them with the simulated boards and the studies, and list for each
power mode the clock steps that its nominal clocks mean on that board.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from epochwatt.board.device.frequencies import resolve
from epochwatt.board.device.kinds import KINDS
from epochwatt.columns import CLOCKS
from epochwatt.figures.common.vega import Cells
from epochwatt.study.devices import Devices
from epochwatt.tables import read_cells
from epochwatt.templates import save_tables
from epochwatt.twin.boards import load_boards, load_samples

PUBLISHED, HERE, STEPS = "published", "here", "steps of the board"  # source of a row
BOARDS = ("nano", "nx", "agx", "orin")  # in the order of Table 1
FITS = ("agx", "nx", "nano")  # columns of Table 2
HEADS = {  # of the pages' columns
    **{"parameters_m": "parameters (M)", "mflop": "multiply-adds (M)"},
    **{"agx": "AGX", "nx": "NX", "nano": "Nano", "orin": "Orin"},
}
STEP_HEADS = {
    **{"cpu_mhz": "CPU step (MHz)", "gpu_mhz": "GPU step (MHz)"},
    **{"emc_mhz": "memory step (MHz)"},
}
N_SOURCES = 3  # rows of each power mode: published, here, steps
FIGURES, WHOLE = 4, 1000.0  # of numbers on a page: how many figures, and from where on whole ones
OF_BOARDS = "Here: what the simulated boards are made of (config/twin/boards.yaml)."
OF_NETWORKS = (
    "Here: millions of parameters, and of multiply-adds of a sample's forward pass, counted kernel "
    "by kernel; data sets of config/twin/samples.yaml; which boards a network fits on by "
    "config/devices/, after the paper. The paper prints multiply-adds as FLOPs, and mixes variants "
    "of the networks: see the notes. Layers, memory and the mini-batch size are printed alone."
)
OF_MODES = (
    "The steps are those of the board's own clock tables that the nominal clocks mean. The nominal "
    "clocks are the paper's; where config/devices/ has others, they stand in brackets."
)

Rows = list[Cells]


def write(config: str, workloads: Iterable[str], paths: Sequence[str]) -> None:
    """Write table1, table2 and table3, each as CSV and as a page."""
    at = Path(config)
    of_boards, of_networks, of_modes = (
        boards(at),
        networks(at, map(Path, workloads)),
        power_modes(at),
    )
    uncounted = [r["model"] for r in of_networks if r["source"] == HERE and "parameters_m" not in r]
    notes = [OF_NETWORKS]
    if uncounted:
        names = ", ".join(uncounted)
        notes.append(f"Not counted here: {names}, since no simulated run of it is selected.")
    for path, title, text, rows, shown in (
        (paths[0], "Table 1: boards", [OF_BOARDS], of_boards, renamed(of_boards)),
        (paths[1], "Table 2: networks and data sets", notes, of_networks, renamed(of_networks)),
        (paths[2], "Table 3: power modes", [OF_MODES], of_modes, side_by_side(of_modes)),
    ):
        save_tables(path.removesuffix(".csv"), title, text, rows, [shown])


def renamed(rows: Rows) -> Rows:
    """Return rows with the headings and in the numbers of the page."""
    return [{HEADS.get(name, name): _short(value) for name, value in row.items()} for row in rows]


def _short(value: Any) -> Any:
    """Return a number to four figures, at least whole; anything else as it is."""
    if not isinstance(value, float):
        return value
    return f"{value:.0f}" if value >= WHOLE else f"{value:.{FIGURES}g}"


def side_by_side(rows: Rows) -> Rows:
    """Return a row of the page for each power mode: nominal clocks, then the board's steps."""
    shown = []
    for n in range(0, len(rows), N_SOURCES):
        published, here, steps = rows[n : n + N_SOURCES]
        row: Cells = {"device": published["device"], "mode": published["power_mode"]}
        for name in CLOCKS:
            same = float(published[name]) == float(here[name])
            row[name] = f"{published[name]}{'' if same else f' ({here[name]:g})'}"
        shown.append(row | {head: steps[name] for name, head in STEP_HEADS.items()})
    return shown


def boards(config: Path) -> Rows:
    """Return the rows of Table 1: each feature as published, then as here where it is known."""
    simulated = load_boards(config / "twin")
    here = {
        name: {
            "CPU cores": board.cores,
            "CPU clock": board.cpu_mhz[1],
            "CUDA cores": board.cuda_cores,
            "GPU clock": board.gpu_mhz[1],
            "RAM": board.ram_mib / 1024,
            "memory clock": board.emc_mhz[1],
        }
        for name, board in ((name, simulated[name]) for name in BOARDS)
    }
    rows: Rows = []
    for row in read_cells(config / "published/table1.csv"):
        feature = row["feature"]
        named = {"feature": feature, "unit": row["unit"]}
        printed = {name: row[name] for name in BOARDS}
        rows.append({**named, "source": PUBLISHED, **printed, "note": row["note"]})
        if feature in here[BOARDS[0]]:
            ours = {name: here[name][feature] for name in BOARDS}
            rows.append({**named, "source": HERE, **ours})
    return rows


def networks(config: Path, workloads: Iterable[Path]) -> Rows:
    """Return the rows of Table 2: each network as published, then as here."""
    counts = {path.stem: json.loads(path.read_text("utf-8")) for path in workloads}
    samples, devices = load_samples(config / "twin"), Devices(config.parent)
    rows: Rows = []
    for row in read_cells(config / "published/table2.csv"):
        model, data = row["model"], samples[row["dataset"]]
        here: Cells = {"model": model, "source": HERE}
        if work := counts.get(model):  # millions, of multiply-adds of a sample's forward pass
            kernels = work["kernels"]
            flop = zip(kernels["flops_per_sample"], kernels["phase"], strict=True)
            forward = sum(per_sample for per_sample, phase in flop if phase == "forward")
            here |= {"parameters_m": work["parameters"] / 1e6, "mflop": forward / 2e6}
        here |= {"dataset": row["dataset"], "samples": data.n_samples}
        here["disk_mb"] = data.mib * 1.048576
        for name in FITS:
            is_too_large = model in devices.get(name, "table2.csv").out_of_memory
            here[name] = "no" if is_too_large else "yes"
        rows += [{"model": model, "source": PUBLISHED, **row}, here]
    return rows


def power_modes(config: Path) -> Rows:
    """Return the rows of Table 3: each mode's published clocks, ours, and the board's steps."""
    devices = Devices(config.parent)
    rows: Rows = []
    for row in read_cells(config / "published/table3.csv"):
        device = devices.get(row["device"], "table3.csv")
        named = {"device": row["device"], "power_mode": row["power_mode"]}
        nominal = device.power_modes[row["power_mode"]].model_dump(include=set(CLOCKS))
        kind = KINDS[device.board]
        choices = {"cpu_mhz": (kind.cpu_khz, 1e3), "gpu_mhz": (kind.gpu_hz, 1e6)}
        choices["emc_mhz"] = (kind.emc_hz, 1e6)
        steps = {
            name: resolve(name, nominal[name], [step / unit for step in known])
            for name, (known, unit) in choices.items()
        }
        rows.append({**named, "source": PUBLISHED, **{name: row[name] for name in CLOCKS}})
        rows.append({**named, "source": HERE, **{name: nominal[name] for name in CLOCKS}})
        rows.append({**named, "source": STEPS, "cores": nominal["cores"], **steps})
    return rows
