"""Draw all figures of the study: each beside its numbers, its caption and its interactive form."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

from epochwatt.claims.table_claims import read_rows
from epochwatt.figures.powertrain import example, learning, limits, looks, matrix
from epochwatt.figures.powertrain.specs import write_spec
from epochwatt.published.paper_numbers import load_paper_numbers
from epochwatt.tables import read_table

TARGETS = {"time": "time_s", "power": "power_w"}


def draw_powertrain(
    tables: Iterable[str], numbers: str, modes: str, style_file: str, folder: str
) -> None:
    """Draw `looks.FIGURES`: SVG, PNG, CSV, caption (.txt), Vega-Lite (.vl.json).

    Parameters
    ----------
    tables : paths of errors.csv, choices.csv and so on; one without rows is drawn as a sentence
    numbers : config/published/powertrain/numbers.csv
    modes : table of the modes of the example's workload; empty: there is no example
    """
    rows = {Path(path).stem: read_rows(path) for path in tables}
    paper = load_paper_numbers(Path(numbers))
    captions = {}
    for provenance, place in looks.FOLDERS.items():
        stem = f"{folder}/{place}/powertrain_"
        for name, target in TARGETS.items():
            captions[f"{stem}learning_{name}"] = learning.draw_learning(
                f"{stem}learning_{name}", rows["errors"], paper, target, provenance, style_file
            )
        captions[f"{stem}limits"] = limits.draw_limits(
            f"{stem}limits", rows["choices"], rows["penalties"], paper, provenance, style_file
        )
    stem = f"{folder}/{looks.FOLDERS['simulated']}/powertrain_"
    captions[f"{stem}transfer"] = matrix.draw_matrix(
        f"{stem}transfer", rows["transfer"], paper, "simulated", style_file
    )
    captions[f"{stem}example"] = example.draw_example(
        f"{stem}example", _modes(modes), rows["fronts"], rows["example"], paper, style_file
    )
    for path, caption in captions.items():
        name = path.removeprefix(f"{folder}/")
        provenance = next(key for key, place in looks.FOLDERS.items() if name.startswith(place))
        text = "\n".join(textwrap.wrap(caption, 100))
        title = looks.FIGURES[name]
        Path(f"{path}.txt").write_text(f"{title}\n\n{text}\n", encoding="utf-8")
        write_spec(path, title, looks.note(provenance))


def _modes(path: str) -> list[dict[str, str]]:
    """Return the rows of a table of modes, compressed or not; none where there is no file."""
    return [row for _, row in read_table(Path(path))] if Path(path).is_file() else []
