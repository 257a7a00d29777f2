"""Opening and saving a panel; the palette."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from epochwatt.errors import ConfigError
from epochwatt.figures.common import style

SETTINGS = {"title": "a panel", "width_in": 4.0, "height_in": 3.0}
PAPER = str(Path(__file__).parents[4] / "config/paper.mplstyle")


@pytest.fixture
def style_file(tmp_path):
    path = tmp_path / "a.mplstyle"
    path.write_text("font.size: 17\nsavefig.dpi: 50\nfigure.dpi: 50\n", "utf-8")
    return str(path)


def test_panel_has_size_title_and_note_in_lines_and_its_style_ends_with_it(style_file):
    before = mpl.rcParams["font.size"]
    note = "many words " * 7 + "; and more"
    with style.panel(style_file, SETTINGS, note) as (figure, axes):
        assert mpl.rcParams["font.size"] == 17 != before
        assert tuple(figure.get_size_inches()) == (4.0, 3.0)
        lines = figure.get_supxlabel().split("\n")
        assert " ".join(lines) == note
        assert max(map(len, lines)) <= 4 * style.NOTE_CHARACTERS_PER_IN
        style.legend(figure, axes.plot([0], [0], label="what"))
        assert len(style.side_by_side(figure, axes, 3)) == len(figure.axes) == 3
        (drawn,) = figure.legends
        assert drawn.get_title().get_text() == "a panel"
        assert [text.get_text() for text in drawn.get_texts()] == ["what"]
    assert mpl.rcParams["font.size"] == before


def test_panel_is_closed_after_an_error(style_file):
    with pytest.raises(RuntimeError), style.panel(style_file, SETTINGS, ""):
        raise RuntimeError
    assert plt.get_fignums() == []


def test_save_writes_three_files_into_a_new_folder(style_file, tmp_path):
    rows = [{"a": 1.5, "b": None}, {"a": "x, y", "c": 2}]
    with style.panel(style_file, SETTINGS, "") as (figure, _):
        style.save(figure, str(tmp_path / "new/deep/fig"), rows)
    assert sorted(p.name for p in (tmp_path / "new/deep").iterdir()) == [
        *("fig.csv", "fig.png", "fig.svg")
    ]
    assert (tmp_path / "new/deep/fig.csv").read_text("utf-8") == 'a,b,c\n1.5,,\n"x, y",,2\n'


@pytest.mark.parametrize(
    ("widths", "available", "columns"),
    [
        *(
            ([1.0, 2.0, 3.0, 2.0], inches, n)
            for inches, n in ((9.0, 4), (7.0, 2), (4.9, 1), (0.1, 1))
        ),
        *(([1.0] * n, 4.0, columns) for n, columns in ((6, 3), (5, 3), (4, 4), (0, 1))),
    ],
)
def test_legend_has_as_many_columns_as_fit_and_no_entry_alone_in_a_row(widths, available, columns):
    assert style.columns_that_fit(widths, available) == columns


def test_colours_are_those_of_the_keys_and_every_missing_one_is_listed():
    palette = {"a": "red", "b": "blue", "c": "green"}
    assert list(style.colours(palette, ["c", "a"]).items()) == [("c", "green"), ("a", "red")]
    with pytest.raises(ConfigError, match="palette has no colour for b, c"):
        style.colours({"a": "red"}, ["b", "a", "c"])
    assert (style.pale("#000000"), style.pale("#ffffff")) == ("#8c8c8c", "#ffffff")


def test_titles_of_fields_are_no_wider_than_these_and_the_panel_grows():
    with style.panel(PAPER, SETTINGS, "note") as (figure, axes):
        narrow, wide = style.side_by_side(figure, axes, 2, (1, 3))
        style.set_titles(figure, [narrow, wide], ["a network\nof many samples in here", "b"])
        assert max(map(len, narrow.get_title().split("\n"))) <= 18
        assert wide.get_title() == "b"
        assert figure.get_figheight() > SETTINGS["height_in"]


def test_a_dollar_sign_begins_no_formula_and_powers_of_ten_need_none(tmp_path):
    titled = {**SETTINGS, "title": "costs $\\frac{$ 5"}
    with style.panel(PAPER, titled, "$x$ and $_$") as (figure, axes):
        axes.plot([1e-3, 1e3], [200.0, 300.0])
        style.set_log(axes, "x", "y")
        style.save(figure, str(tmp_path / "a"), [])
        ticks = [tick.get_text() for tick in axes.get_xticklabels()]
        between = [tick.get_text() for tick in axes.get_yticklabels(minor=True)]
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert "costs $\\frac{$ 5" in svg
    assert "$x$ and $_$" in svg
    assert "10⁻³" in ticks
    assert "3×10²" in between


def test_axes_of_zeros_on_a_logarithmic_scale_end_and_long_names_leave_room(style_file, tmp_path):
    with style.panel(style_file, SETTINGS, "") as (figure, axes):
        axes.plot([1.0, 10.0], [0.0, 0.0])
        style.set_log(axes, "x", "y")
        style.save(figure, str(tmp_path / "a"), [])
        assert axes.get_ylim() == (0.1, 1.0)
        assert 0.0 < axes.get_xlim()[0] < axes.get_xlim()[1]
    with style.panel(style_file, SETTINGS, "") as (figure, axes):
        axes.barh(["x" * 80], [1.0])
        style.save(figure, str(tmp_path / "b"), [])
        assert figure.get_figwidth() > SETTINGS["width_in"]
        assert axes.get_position().width * figure.get_figwidth() > 0.1
