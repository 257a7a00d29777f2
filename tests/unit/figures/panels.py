"""Panels as tests look at them: the job keeps them, and their text has to be readable."""

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from unittest import mock

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from epochwatt.figures.common.job import Job

INVALID = {"valid": False, "flags": {"fresh_weights"}, "e2e_s": 1000.0}  # an epoch

SMALLEST_PT = 6.0  # letters at the printed size
TOUCH_PX = 1.0  # texts may touch


@dataclass(frozen=True)
class KeepingJob(Job):
    """A job that keeps the texts of each panel that it saves, as they are drawn for the PNG."""

    saved: dict[str, list[tuple[Text, Bbox, Bbox]]] = field(default_factory=dict)

    def save(self, figure, name, rows):
        with drawn_texts() as texts:
            super().save(figure, name, rows)
        self.saved[name] = texts[figure]


@contextmanager
def drawn_texts():
    """Yield figure -> its texts as in `KeepingJob.saved`: those drawn for a PNG until the end."""
    texts, kept, draw_text = {}, defaultdict(list), Text.draw

    def draw(text, renderer, *args, **kwargs):
        if isinstance(renderer, RendererAgg) and text.get_visible() and text.get_text().strip():
            canvas = text.get_figure(root=True).bbox.frozen()
            texts[text] = text, inked(text, renderer), canvas
        draw_text(text, renderer, *args, **kwargs)

    with mock.patch.object(Text, "draw", draw):
        yield kept
    for text, row in texts.items():
        kept[text.get_figure(root=True)].append(row)


def inked(text, renderer):
    """Return the box of a text without the empty lines that it begins or ends with."""
    if isinstance(text, Annotation):
        text.update_positions(renderer)
    box, words = Text.get_window_extent(text, renderer), text.get_text()
    line, stripped = box.height / (words.count("\n") + 1), words.rstrip("\n ")
    y0 = box.y0 + line * (words.count("\n") - stripped.count("\n"))
    y1 = box.y1 - line * (len(words) - len(words.lstrip("\n")))
    return Bbox([[box.x0, y0], [box.x1, y1]])


def assert_readable(panels):
    """Fail when the text of a panel is too small, overlaps or leaves the canvas."""
    assert panels
    for name, texts in panels.items():
        assert texts, f"{name}: no text was drawn"
        small = [text.get_text() for text, _, _ in texts if text.get_fontsize() < SMALLEST_PT]
        assert not small, f"{name}: too small: {small}"
        cut = [text.get_text() for text, box, canvas in texts if leaves(box, canvas)]
        assert not cut, f"{name}: off the canvas: {cut}"
        pairs = [
            (a.get_text(), b.get_text())
            for (a, one, _), (b, two, _) in combinations(texts, 2)
            if overlap(one, two)
        ]
        assert not pairs, f"{name}: texts overlap: {pairs}"


def words(job, panel):
    """Return the texts of a panel of a job, each in one line."""
    return [" ".join(text.get_text().split()) for text, _, _ in job.saved[panel]]


def overlap(one, two):
    """Return whether two boxes of the canvas share more than a touch."""
    width = min(one.x1, two.x1) - max(one.x0, two.x0)
    height = min(one.y1, two.y1) - max(one.y0, two.y0)
    return width > TOUCH_PX and height > TOUCH_PX


def leaves(box, canvas):
    """Return whether a box is partly outside of the canvas."""
    over = (canvas.x0 - box.x0, canvas.y0 - box.y0, box.x1 - canvas.x1, box.y1 - canvas.y1)
    return max(over) > TOUCH_PX
