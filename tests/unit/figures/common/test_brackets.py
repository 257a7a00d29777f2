"""Published relations as they are drawn: brackets over bars, and strips of changes."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.markers import CARETUPBASE

from epochwatt.figures.common.brackets import Bracket, draw_brackets, draw_changes
from epochwatt.figures.common.relations import Related, related


@pytest.fixture
def axes():
    figure, axes = plt.subplots(layout="constrained")
    yield axes
    plt.close(figure)


def test_brackets_stand_above_all_bars_and_not_on_one_another(axes):
    axes.bar([0, 1, 2], [3.0, 2.0, 1.0])
    draw_brackets(
        axes,
        [Bracket(0, 1, ["a published", "a here"], True), Bracket(0, 2, ["b"], False)],
        "black",
    )
    axes.figure.draw_without_rendering()
    boxes = [line.get_window_extent() for line in axes.lines]
    assert min(box.y0 for box in boxes) > axes.bbox.y1
    assert boxes[0].y1 < boxes[1].y0
    assert max(text.get_window_extent().y1 for text in axes.texts) <= axes.figure.bbox.y1
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    one, two = (text.get_window_extent() for text in axes.texts)
    assert not one.overlaps(two)


def test_brackets_take_nothing_from_the_scale_and_stand_below_the_title(axes):
    axes.bar([0, 1], [3.0, 2.0])
    axes.set_title("title", fontsize="small", color="red")
    before = axes.get_ylim()
    draw_brackets(axes, [Bracket(0, 1, ["a"], True)], "black")
    axes.figure.draw_without_rendering()
    assert axes.get_ylim() == before
    (words,) = axes.texts
    assert axes.title.get_window_extent().y0 >= words.get_window_extent().y1
    assert axes.title.get_color() == "red"


def test_no_brackets_leave_the_axes_alone(axes):
    before = axes.get_ylim()
    draw_brackets(axes, [], "black")
    assert axes.get_ylim() == before
    assert not axes.lines


def test_strip_has_a_line_at_the_published_change_and_a_dot_at_ours(axes, relations):
    found = related(
        [relations["RS5.6.4-01"]], lambda c, _: 50.0 + ord(c["power_mode"]), frozenset()
    )
    (row,) = draw_changes(axes, found, ["b→c"], ["red"], "black")
    assert row["published"] == -22.3
    assert row["value"] == pytest.approx(100 / 148)
    (line,) = axes.collections
    assert [tuple(at) for at in line.get_segments()[0]] == [(-0.35, -22.3), (0.35, -22.3)]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["b→c"]


@pytest.mark.parametrize(("name", "arrows"), [("RS5.6.6-12", [-6.8]), ("RS5.6.5-04", [])])
def test_a_printed_bound_has_an_arrow_that_points_to_where_numbers_meet_it(
    relations, axes, name, arrows
):
    one = Related(relations[name], (-3.0,), seen_by_fit=True)
    draw_changes(axes, [one], ["m to g"], ["green"], "black")
    drawn = [line for line in axes.lines if line.get_marker() == CARETUPBASE]
    assert [y for line in drawn for y in line.get_ydata()] == arrows
