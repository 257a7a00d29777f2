"""Tables that a stranger may have: valid by the project's own schemas, and like none of ours."""

import csv
import random
import types
import typing
from dataclasses import MISSING, dataclass, fields, replace
from itertools import product
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from epochwatt import columns as columns
from epochwatt.board.records.run_folder import write_record
from epochwatt.board.records.samples import SampleWriter
from epochwatt.claims.claims_table import ClaimRow
from epochwatt.epochs.collect import write_rows
from epochwatt.epochs.table import read_rows
from epochwatt.roofline.fits import PLACE, FitRow, write_fits
from epochwatt.roofline.points import Point, write_points

ODD = (  # of networks, data sets, devices, units, modes
    'Netz "größer" <b>&amp; $x_1^2$ %s {braces}',
    "</script><img src=x onerror=alert(1)>",
    "$\\frac{$ costs $5",
    "O'Brien, Müller; {0} {{}} %d",
    "NA",
    "1e5",
    "<!-- -->",
    "x" * 60,
)
MODELS = ("lenet", "mobilenet", "resnet", "vgg11", "own")
DEVICES = ("agx", "nx", "nano", "orin", "host")
SPREADS = ("equal", "narrow", "decades", "zeros", "one high")
VALID = ("all", "all", "all", "none", "some", "not the first", "the first alone")
POWERS = ("module", "gpu", "cpu_package", "socket", "none", "none", "some")
GAPS = ("none", "none", "some", "all")  # which cells are empty that may be


@dataclass(frozen=True)
class Shape:
    """What a table is like."""

    seed: int  # of the cells
    n_things: int  # runs or devices
    n_rows: int  # epochs of a run, modes or points of a device
    scale_log10: int  # of numbers
    spread: str  # these as named above
    valid: str
    power: str
    gaps: str
    odd: bool  # whether names are not those of the papers
    backend: str  # whose runs

    @property
    def few(self):
        """Number of rows where each takes long."""
        return min(self.n_rows, 12)


def shapes(n_rows=(1, 1, 2, 2, 3, 5, 12, 1000), backends=("host", "jetson", "twin", "fake")):
    """Return a strategy of shapes; what stands first is what an example is made simpler to."""
    return st.builds(
        Shape,
        seed=st.integers(0, 2**32 - 1),
        n_things=st.sampled_from((1, 1, 2, 3, 5, 9)),
        n_rows=st.sampled_from(n_rows),
        scale_log10=st.sampled_from((0, -6, -3, -1, 1, 3, 6)),
        spread=st.sampled_from(SPREADS),
        valid=st.sampled_from(VALID),
        power=st.sampled_from(POWERS),
        gaps=st.sampled_from(GAPS),
        odd=st.booleans(),
        backend=st.sampled_from(backends),
    )


class Cells:
    """Cells of one table, one after the other."""

    def __init__(self, shape):
        self.shape, self.random = shape, random.Random(shape.seed)

    def number(self):
        """Return a number of the table's size and spread, never below zero."""
        scale, draw = 10.0**self.shape.scale_log10, self.random
        return {
            "equal": lambda: scale,
            "narrow": lambda: scale * draw.uniform(0.9, 1.1),
            "decades": lambda: 10.0 ** draw.uniform(-6, 6),
            "zeros": lambda: draw.choice((0.0, scale)),
            "one high": lambda: scale * (1e6 if draw.random() < 0.1 else 1.0),
        }[self.shape.spread]()

    def positive(self):
        """Return the same of what cannot be zero."""
        return self.number() or 1e-6

    def is_empty(self):
        """Return whether a cell is empty that may be."""
        return self.random.random() < {"none": 0.0, "some": 0.3, "all": 1.0}[self.shape.gaps]

    def of_kind(self, kind):
        """Return a cell of a `Field.kind`."""
        if kind == "str":
            return self.random.choice(ODD)
        if kind == "bool":
            return self.random.random() < 0.5
        return max(1, min(int(self.number()), 10**6)) if kind == "int" else self.number()


def factors_of(cells, places):
    """Return the factors of a run; `places`: values that a factor may have, if a figure says so."""
    shape, choose = cells.shape, cells.random.choice
    chosen = columns.with_defaults(
        {
            **{"backend": shape.backend, "device": choose(DEVICES[: 1 + shape.n_things])},
            **{"instance": choose(("d1", "d2", "local")), "model": choose(MODELS)},
            **{"dataset": choose(("mnist", "gld23k")), "num_workers": choose((0, 1, 4, 4, 8))},
            **{"dataset_source": choose(("official", "digits")), "dvfs": choose(("off", "on"))},
            **{"storage": choose(("ssd", "sd", "hdd", "emmc", "disk"))},
            **{"power_mode": choose(("g", "a", "b", "native", "15W"))},
            **{
                "batch_size": choose((1, 16, 16, 128)),
                "imported": choose(("", "", "", "train.py")),
            },
            **{"setup": choose(("own", "sigmetrics2023", "hipcw2021"))},
            **{"dataset_scale": choose((1.0, 1.0, 0.25, 4.0))},
        }
    )
    if shape.odd:
        for name in ("device", "instance", "model", "dataset", "power_mode", "storage"):
            chosen[name] = choose(ODD)
    for name, values in places.items():
        chosen[name] = choose(values)
    if not chosen["num_workers"]:
        chosen["prefetch_factor"] = None
    return chosen


FLAGS = ("fresh_weights", "machine_shared", "mode_not_verified", "power_gap")


def is_valid(cells, epoch):
    """Return whether an epoch counts, as the shape has it."""
    which = cells.shape.valid
    first = {"not the first": False, "the first alone": True}
    if which in first:
        return first[which] if epoch == 0 else not first[which]
    return {"all": True, "none": False, "some": cells.random.random() < 0.5}[which]


def epoch_rows(cells, run, factors):
    """Return a run's rows as `epochs/collect.py` makes them, what was measured and what follows."""
    shape = cells.shape
    power = cells.random.choice((*POWERS[:4], "none")) if shape.power == "some" else shape.power
    gone = {f.name for f in columns.EPOCH_COLUMNS if cells.is_empty()}
    needed = ("epoch", "valid", "flags", "protocol", "schema_version", "e2e_s", "timing_method")
    needed += ("wait_s", "copy_s", "stall_s", "compute_s", "overhead_s", "fetch_s")
    needed += ("t_start_unix_s", "t_end_unix_s", "preprocess_s", "n_minibatches")
    gone = gone - set(needed)
    rows = []
    for epoch in range(shape.n_rows):
        wait_s, copy_s, compute_s = (cells.number() for _ in range(3))
        rest_s = cells.positive()
        e2e_s = min(wait_s + copy_s + compute_s + rest_s, 1e7)
        row = dict.fromkeys(columns.names(columns.RUN_EPOCH_COLUMNS))
        row.update({f.name: cells.of_kind(f.kind) for f in columns.EPOCH_COLUMNS})
        for name in row:
            if name.endswith("_pct"):
                row[name] = min(float(row[name]), 100.0)
        row.update({name: factors[name] for name in columns.FACTOR_NAMES})
        row.update(run=run, epoch=epoch, protocol=1, schema_version=columns.SCHEMA_VERSION)
        row.update(t_start_unix_s=1.75e9 + epoch * e2e_s, t_end_unix_s=1.75e9 + (epoch + 1) * e2e_s)
        row.update(e2e_s=e2e_s, wait_s=wait_s, copy_s=copy_s, compute_s=compute_s)
        row.update(stall_s=wait_s + copy_s, overhead_s=e2e_s - wait_s - copy_s - compute_s)
        row.update(timing_method=cells.random.choice(("host_clock", "cuda_events_synchronised")))
        row.update(power_scope=power, energy_method="trapezoid")
        if power == "none":
            row.update({f.name: None for f in columns.ENERGY_COLUMNS})
        elif row["energy_wh"] is not None:
            row["power_mean_w"] = 3600 * row["energy_wh"] / e2e_s if e2e_s else None
        row.update(dict.fromkeys(gone))
        row["valid"] = is_valid(cells, epoch)
        row["flags"] = {cells.random.choice(FLAGS)} if not row["valid"] or epoch == 1 else set()
        rows.append(row)
    return rows


def write_runs(shape, folder, places=(), with_records=False):
    """Write `epochs.csv` of some runs; return the paths and run -> folder of records."""
    shape = replace(shape, n_rows=shape.few) if with_records else shape
    cells, paths, records = Cells(shape), [], {}
    folder.mkdir(exist_ok=True)
    for number in range(shape.n_things if shape.n_rows < 100 else 1):
        run = f"run-{number}"
        factors = factors_of(cells, dict(places))
        rows = epoch_rows(cells, run, factors)
        records[run] = str(folder / "measured" / run)
        if with_records:
            for row in rows:
                _write_record(cells, Path(records[run]), row)
        paths.append(str(folder / f"{run}.csv"))
        write_rows(paths[-1], columns.names(columns.RUN_EPOCH_COLUMNS), rows)
    return paths, records


def _write_record(cells, folder, row):
    """Write the record of an epoch: mini-batches and telemetry that fit its row."""
    place = folder / f"epoch-{row['epoch']}"
    place.mkdir(parents=True)
    n = cells.random.choice((1, 2, 70))
    row["n_minibatches"] = n
    parts = [[row[name] / n for name in columns.MINIBATCH_COLUMNS] for _ in range(n)]
    start_s = 1000.0 + 1e7 * row["epoch"]
    clocks = {"cores_online": [0, 1], "cpu_mhz": cells.positive(), "gpu_mhz": cells.positive()}
    clocks["emc_mhz"] = cells.positive()
    mode = {"cores": 2, **{k: v for k, v in clocks.items() if k != "cores_online"}}
    read = None if cells.is_empty() else clocks
    power_mode = {"verified": True, "dvfs": "on", "read_back": read, "resolved": read}
    meta = {name: row[name] for name in columns.names(columns.RUN_EPOCH_COLUMNS)} | {
        "factors": {name: row[name] for name in columns.FACTOR_NAMES}
        | ({} if cells.is_empty() else {"power_mode_settings": mode}),
        "t_start_mono_s": start_s,
        "t_end_mono_s": start_s + row["e2e_s"],
        "flags": sorted(row["flags"]),
        "machine": {"cpu_model": cells.random.choice(ODD), "n_cpus": 2, "board": ""},
        "software": {"torch": "2.9.1"},
        "measurement_id": "m",
        "boot_id": "b",
        "cold_process": True,
        "events": {"before": {}, "after": {}},
        "board": {"power_mode": power_mode, "busy_pct": None, "settled": None},
    }
    write_record(str(place), meta, np.array(parts, np.float32), durable=False)
    names = ("gpu_mhz", "cpu0_mhz", "cpu1_mhz", "read_iops", "power_w")
    if cells.is_empty():
        return
    writer = SampleWriter(str(place), "board", names)
    system = SampleWriter(str(place), "system", ("read_iops", "cpu0_mhz"))
    for step in range(cells.random.choice((1, 5, 40))):
        at = start_s + row["e2e_s"] * step / 40
        gap = float("nan") if cells.random.random() < 0.1 else 1.0
        writer.add(at, at, [gap * cells.number() for _ in names])
        system.add(at, at, [gap * cells.number() for _ in range(2)])
    writer.flush()
    system.flush()


def rows_of(kind, cells, n_rows, **given):
    """Return `n_rows` rows of a dataclass of a table, each attribute as it is typed."""
    hints = typing.get_type_hints(kind)
    rows = []
    for _ in range(n_rows):
        row = {}
        for field in fields(kind):
            if field.name in given:
                value = given[field.name]
                row[field.name] = value(row) if callable(value) else value
            elif field.default is not MISSING and cells.is_empty():
                row[field.name] = field.default
            else:
                row[field.name] = _typed(hints[field.name], cells)
        rows.append(kind(**row))
    return rows


def _typed(hint, cells):
    """Return a value of a type: a choice of a Literal, the first of a union, else a plain one."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return cells.random.choice(inside)
    if origin in (typing.Union, types.UnionType):
        return _typed(inside[0], cells)
    if hint is float:
        return cells.positive()
    if hint is int:
        return max(1, min(int(cells.number()), 10**6))
    return {bool: True, str: ""}[hint] if hint is not str else cells.random.choice(ODD)


def write_csv(path, names, rows):
    """Write rows as CSV; None is an empty cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


UNITS = ("_pct", "_median", "_s", "_w", "_wh", "_mhz", "_j")
UNITS += ("minutes", "_flops", "value", "low", "high")


def named_rows(names, cells, n_rows, needed=(), **choices):
    """Return `n_rows` rows of a table whose columns have names alone: the unit ends a number's."""

    def cell(name):
        if name in choices:
            return cells.random.choice(choices[name])
        if name not in needed and cells.is_empty():
            return ""
        if name.endswith(UNITS):
            return f"{cells.number():.6g}"
        if name.startswith("n_") or name in ("draw", "cores", "batch_size", "rank"):
            return str(cells.of_kind("int"))
        return cells.random.choice(ODD)

    return [{name: cell(name) for name in names} for _ in range(n_rows)]


# -- tables of the workflow, written for those who read them ------------------------------------


def write_idle(shape, folder):
    """Write idle.csv of some boards in some states; return its path."""
    cells, rows = Cells(shape), []
    for _ in range(shape.n_things):
        factors = factors_of(cells, {})
        scope = cells.random.choice(("module", "socket"))
        states = ("i", "ii", "iii", "iv")[: cells.random.choice((0, 1, 4))]
        for state in states:
            row = {f.name: factors.get(f.name) for f in columns.IDLE_COLUMNS}
            row |= {"state": state, "power_scope": scope, "power_w": cells.number()}
            row |= {"duration_s": cells.number(), "power_error_pct": ""}
            rows.append(row)
    return write_csv(folder / "idle.csv", columns.names(columns.IDLE_COLUMNS), rows)


def write_energies(shape, paths):
    """Write energy.csv beside each `epochs.csv`: some scopes of each epoch; return the paths."""
    cells, written = Cells(shape), []
    for path in paths:
        rows = []
        for row in read_rows(path):
            for scope in cells.random.choice(((), ("gpu",), ("gpu", "cpu_package"), ("module",))):
                known = {f.name: row.get(f.name) for f in columns.RUN_ENERGY_COLUMNS}
                energy_wh = None if cells.is_empty() else cells.number()
                known |= {"power_scope": scope, "flags": set(), "energy_wh": energy_wh}
                rows.append(known)
        written.append(path.replace(".csv", ".energy.csv"))
        write_rows(written[-1], columns.names(columns.RUN_ENERGY_COLUMNS), rows)
    return written


def write_predictions(shape, paths, folder):
    """Write predictions.csv of the modes that runs had; return its path."""
    place = ("backend", "setup", "device", "instance", "model", "storage", "num_workers")
    place += ("batch_size", "run", "power_mode")
    cells, rows = Cells(shape), []
    methods = product(("time_s", "energy_wh"), (("paper", "chosen"), ("physical", "every")))
    for path, (target, (method, learned)) in product(paths, methods):
        row = {name: read_rows(path)[0].get(name) for name in place} | {"cores": 8}
        row |= {name: cells.positive() for name in ("cpu_mhz", "gpu_mhz", "emc_mhz")}
        row |= {"target": target, "method": method, "learned_from": learned}
        row |= {"in_training_set": cells.of_kind("bool"), "observed": cells.number()}
        row |= {"predicted": cells.number() * cells.random.choice((1, -1))}
        rows.append(row | {"low": "", "high": "", "mape_pct": cells.number()})
    return write_csv(folder / "predictions.csv", list(rows[0]), rows)


def write_claims(shape, folder, n_rows=6):
    """Write claims.csv with every status; return its path."""
    cells = Cells(shape)
    choices = {
        "takeaway": ("5.1.1", "5.6.1", "III.A"),
        "paper": ("sigmetrics2023", "hipcw2021"),
        "role": ("qual", "quant"),
        "backend": (shape.backend,),
        "form": ("paper", "general"),
        "board": ("", f"own, {ODD[0]}, d1"),
        "status": ("holds", "does_not_hold", "not_evaluable"),
        "margin_pct": ("", "3.1"),
        "status_held_out": ("", "holds", "not_held_out"),
        "fragile": ("", "yes", "no"),
        "comparison": (f"{cells.number():g} < {cells.number():g}; b", ""),
    }
    rows = named_rows(ClaimRow._fields, cells, n_rows, **choices)
    return write_csv(folder / "claims.csv", ClaimRow._fields, rows)


def write_roofs(shape, folder, provenance):
    """Write fits.csv and points.csv of some devices; return the paths."""
    cells, fits, points = Cells(shape), [], []
    devices = ("host", *ODD) if shape.odd else ("host", "agx_orin")
    for _ in range(shape.n_things):
        place = {"provenance": provenance, "device": cells.random.choice(devices)}
        place |= {"instance": cells.random.choice(("", "d1"))}
        costs = dict.fromkeys(("j_per_flop", "j_per_byte", "constant_w"))
        if shape.power != "none":
            costs = {name: cells.positive() for name in costs}
        fits += rows_of(
            FitRow, cells, 1, **place, **costs, n=3, cached_bytes_per_s=None,
            ridge_flop_per_byte=lambda row: row["flops_per_s"] / row["bytes_per_s"],
        )  # fmt: skip
        work = {"flops": lambda _: cells.number(), "bytes": lambda _: cells.number()}
        points += rows_of(Point, cells, shape.few, **place_of(fits[-1]), **work)
    write_fits(folder / "fits.csv", fits if shape.seed % 7 else [])
    write_points(folder / "points.csv", points)
    return str(folder / "fits.csv"), str(folder / "points.csv")


def place_of(fit):
    """Return what a point has to share with a roof to stand below it."""
    return {name: getattr(fit, name) for name in PLACE}
