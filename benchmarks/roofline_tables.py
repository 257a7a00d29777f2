"""Tables of the documentation on rooflines: what tuned modes save, and how well one predicts.

Made from results/pagoda/tuning.csv (`snakemake pagoda`) and results/sweeps/scores.csv (`snakemake
sweep_scores`) by `python -m benchmarks.tables`.
"""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.results import REPOSITORY
from epochwatt.figures.roofline.tuning import name_of
from epochwatt.prediction.evaluation.sweep_scores import MEDIAN, RANDOM, Judged, judged, short
from epochwatt.prediction.names import TIME
from epochwatt.roofline.tuning import FASTEST, LEAST

TUNING = REPOSITORY / "results/pagoda/tuning.csv"
LITTLE = f"{LEAST}_within_5"
METHODS = {"physical": "physical terms (sum)", "roofline": "roofline over clocks (max)"}
BOARD = (
    "translucence-"  # sweeps of boards that others ran whole workloads on, in all parts of a mode
)
SIZES = (4, 10, 50)  # random modes
YARDSTICKS = {"maxn": "MAXN", FASTEST: "fastest mode"}
PARTS = {"cores": "cores", "cpu_mhz": "CPU", "gpu_mhz": "GPU", "emc_mhz": "EMC"}

Table = list[list[str]]
Row = Mapping[str, str]


def tuning_table(rows: Sequence[Row]) -> Table:
    """Return what the modes of least energy save, of rows of tuning.csv, the header first."""
    within = ["saved at most 5 % slower, %", "in mode (MHz)"]
    least = ["most saved, %", "slower by, %", "in mode (MHz)"]
    table = [["origin", "workload", "against", *within, *least]]
    aims = ({_key(row): row for row in rows if row["aim"] == aim} for aim in (LITTLE, LEAST))
    little, most = aims
    for key, row in little.items():
        saved, slower = (float(most[key][name]) for name in ("saved_pct", "slower_pct"))
        own = [row["provenance"], name_of(row), YARDSTICKS[row["against"]]]
        cells = [f"{float(row['saved_pct']):.1f}", _mode(row)]
        table.append([*own, *cells, f"{saved:.1f}", f"{slower:.0f}", _mode(most[key])])
    return table


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in ("sweep", "device", "workload", "task"))


def _mode(row: Row) -> str:
    """Return the stated parts of a mode: `12 cores, 2201.6 CPU`."""
    return ", ".join(f"{row[part]} {word}" for part, word in PARTS.items() if row[part])


def method_table(rows: Sequence[Row]) -> Table:
    """Return errors of time of the roofline and of `physical`, of rows of scores.csv."""
    table = [["sweep", "method", *(f"{size} modes" for size in SIZES)]]
    for unit in judged(rows):
        if unit.key[0].startswith(BOARD):
            name = f"{unit.key[0]}, {unit.shared['n_modes']} modes"
            table += [[name, words, *_errors(unit, method)] for method, words in METHODS.items()]
    return table


def _errors(unit: Judged, method: str) -> Iterator[str]:
    for size in SIZES:
        cell = unit.cell((RANDOM, size), method, TIME, MEDIAN)
        yield f"{short(cell.value)} ({short(cell.low)} to {short(cell.high)})" if cell else ""
