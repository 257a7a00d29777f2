"""Draw the transfer matrix: error from each reference to each workload, ours beside the paper's."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.powertrain import looks
from epochwatt.published.paper_numbers import PaperNumber

Row = Mapping[str, str]
Matrix = dict[tuple[str, str], Cells]
TITLE = "From which workload to which: error of predicted modes"
WIDTH_IN = 7.2
ROW_IN, HEAD_IN = 0.62, 1.3  # of a row of cells; of title, axis and note of each matrix
TONES = LinearSegmentedColormap.from_list("tones", ["#FFFFFF", "#9DC3E0"])  # text stays readable
CAPTION = """Mean absolute percentage error (MAPE) of predicted time and power in all modes that
were not profiled, from each reference workload (row) to each target (column), fifty random modes
of the target profiled. Framed: no transfer, a network on all modes of its own workload, judged on
what it learned from. Ours: median over draws, below it the quartiles."""
BESIDE = """Ours is simulated; the paper's (Fig. 6, printed) was measured on a real AGX Orin. Our
detector is SSDLite320 in place of YOLOv8n. Tones share one scale within a row."""


def caption(provenance: str) -> str:
    """Return the caption of a figure."""
    text = f"{CAPTION} {BESIDE}" if provenance == "simulated" else CAPTION
    return " ".join(text.split())


def our_cells(transfer: Sequence[Row], target: str) -> Matrix:
    """Return (reference, workload) -> the row that the CSV of the figure has."""
    return {
        (row["reference"], row["workload"]): {
            **{name: row[name] for name in ("device", "method", "n_profiled", "n_draws")},
            "value": float(row["mape_pct"]),
            "low": row["low_pct"],
            "high": row["high_pct"],
            "source": "ours",
        }
        for row in transfer
        if row["target"] == target and row["mape_pct"]
    }


def paper_cells(numbers: Sequence[PaperNumber], target: str) -> Matrix:
    """Return (reference, workload) -> the same of the paper."""
    return {
        (number.reference, number.workload): {
            **{"device": number.device, "method": number.method},
            **{"n_profiled": number.n_profiled, "value": number.value, "source": "paper"},
            **{"published_id": number.id, "exactness": number.exactness},
        }
        for number in numbers
        if number.group == "transfer-matrix" and number.target == target
    }


def draw_matrix(
    stem: str,
    transfer: Sequence[Row],
    numbers: Sequence[PaperNumber],
    provenance: str,
    style_file: str,
) -> str:
    """Draw ours and, of simulated boards, the paper's; return the caption."""
    mine = [row for row in transfer if row["provenance"] == provenance]
    ours = {target: our_cells(mine, target) for target in looks.TARGETS}
    is_beside = provenance == "simulated"
    paper = {t: paper_cells(numbers, t) if is_beside else {} for t in looks.TARGETS}
    meant = paper if is_beside else ours  # ours has pairs that the paper's matrix has not
    names = looks.ordered(name for cells in meant.values() for pair in cells for name in pair)
    names = names if any(ours.values()) else []
    height = 0.8 + len(looks.TARGETS) * (HEAD_IN + ROW_IN * max(len(names), 1))
    title = TITLE + (", ours beside the paper's" if is_beside else looks.suffix(provenance))
    settings = {"title": title, "width_in": WIDTH_IN, "height_in": height}
    with style.panel(style_file, settings, _note(provenance)) as (figure, axes):
        if not names:
            style.notice(figure, f"{title}: no pair of workloads.")
            style.save(figure, stem, [])
            return caption(provenance)
        axes.remove()
        sources = ("ours, simulated", "the paper, real board") if is_beside else ("ours",)
        places = figure.subplots(len(ours), len(sources), squeeze=False)
        for line, target in zip(places, looks.TARGETS, strict=True):
            both = [ours[target], paper[target]][: len(sources)]
            most = max((c["value"] for cells in both for c in cells.values()), default=1.0)
            for place, cells, source in zip(line, both, sources, strict=True):
                _draw(place, cells, names, most, source.startswith("the"))
                title = f"error of {looks.TARGETS[target]} (MAPE, %): {source}"
                place.set_title(title, fontsize="small")
            line[0].set_ylabel("reference")
        rows = _rows(ours, paper, provenance)
        style.save(figure, stem, [r for r in rows if {r["reference"], r["workload"]} <= set(names)])
    return caption(provenance)


def _note(provenance: str) -> str:
    beside = "the paper's is of a real AGX Orin" if provenance == "simulated" else ""
    return looks.note(provenance, beside, "framed: no transfer, all modes")


def _rows(ours: Mapping[str, Matrix], paper: Mapping[str, Matrix], provenance: str) -> list[Cells]:
    return [
        {
            **{"provenance": provenance, "reference": reference, "workload": name},
            **{"quantity": f"{target}_mape_pct", **cell},
        }
        for by_target in (ours, paper)
        for target, cells in by_target.items()
        for (reference, name), cell in cells.items()
    ]


def _draw(axes: Axes, cells: Matrix, names: Sequence[str], most: float, is_paper: bool) -> None:
    """Draw a matrix: a square for each pair, with its number."""
    for row, reference in enumerate(names):
        for column, name in enumerate(names):
            cell = cells.get((reference, name))
            tone = TONES(cell["value"] / most) if cell else "#FFFFFF"
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=tone, edgecolor="#DDDDDD"))
            if not cell:
                axes.text(column + 0.5, row + 0.5, "–", ha="center", va="center", color="#555555")
                continue
            spread = (
                f"{float(cell['low']):.3g} to {float(cell['high']):.3g}" if _ranges(cell) else ""
            )
            y = row + (0.38 if spread else 0.5)
            digits = f"{cell['value']:{'g' if is_paper else '.3g'}}"
            axes.text(column + 0.5, y, digits, ha="center", va="center")
            axes.text(
                column + 0.5, row + 0.74, spread, ha="center", va="center", fontsize="x-small"
            )
            if cell["method"] != "powertrain":
                corner = (column + 0.03, row + 0.03)
                axes.add_patch(Rectangle(corner, 0.94, 0.94, fill=False, lw=1.2, zorder=3))
    axes.set_xlim(0, len(names))
    axes.set_ylim(len(names), 0)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    titles = [_short(name, is_paper) for name in names]
    at = [place + 0.5 for place in range(len(names))]
    axes.set_xticks(at, titles, fontsize="x-small")
    axes.set_yticks(at, titles, fontsize="x-small")
    axes.set_xlabel("target")
    for side in axes.spines.values():
        side.set_visible(False)


def _ranges(cell: Cells) -> bool:
    """Return whether a cell has quartiles of several draws."""
    return bool(cell.get("low")) and cell["low"] != cell["high"]


def _short(name: str, is_paper: bool) -> str:
    """Return a workload's name in two lines; the paper's where it ran another network."""
    words = looks.workload(name)
    if is_paper and name in looks.STAND_INS:
        words = f"{looks.STAND_INS[name]} on {words.partition(' on ')[2]}"
    return words.replace(" on ", "\non ").replace(", ", ",\n")
