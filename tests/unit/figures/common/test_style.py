"""Opening and saving a panel; the palette."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from epochwatt.errors import ConfigError
from epochwatt.figures.common import style

SETTINGS = {"title": "a panel", "width_in": 4.0, "height_in": 3.0}


@pytest.fixture
def style_file(tmp_path):
    path = tmp_path / "a.mplstyle"
    path.write_text("font.size: 17\nsavefig.dpi: 50\nfigure.dpi: 50\n", "utf-8")
    return str(path)


def test_panel_has_size_title_and_note(style_file):
    with style.panel(style_file, SETTINGS, "3 epochs") as (figure, _):
        assert tuple(figure.get_size_inches()) == (4.0, 3.0)
        assert figure.legends[0].get_title().get_text() == "a panel"
        assert figure.get_supxlabel() == "3 epochs"


def test_style_file_holds_inside_the_panel_only(style_file):
    before = mpl.rcParams["font.size"]
    with style.panel(style_file, SETTINGS, ""):
        assert mpl.rcParams["font.size"] == 17
    assert mpl.rcParams["font.size"] == before != 17


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


def test_note_grows_and_breaks_into_lines_that_fit(style_file):
    with style.panel(style_file, SETTINGS, "many words " * 7) as (figure, _):
        style.add_to_note(figure, "; and more")
        lines = figure.get_supxlabel().split("\n")
    assert len(lines) == 2
    assert " ".join(lines).endswith("many words; and more")
    assert max(map(len, lines)) <= 4 * style.NOTE_CHARACTERS_PER_IN


def test_side_by_side_axes_share_the_panels_title(style_file):
    with style.panel(style_file, SETTINGS, "") as (figure, axes):
        assert len(style.side_by_side(figure, axes, 3)) == len(figure.axes) == 3
        assert figure.legends[0].get_title().get_text() == "a panel"


def test_legend_stands_below_the_panels_title(style_file):
    with style.panel(style_file, SETTINGS, "") as (figure, axes):
        style.legend(figure, axes.plot([0], [0], label="what"))
        (drawn,) = figure.legends
    assert drawn.get_title().get_text() == "a panel"
    assert [text.get_text() for text in drawn.get_texts()] == ["what"]


def test_legend_takes_the_place_of_all_before_it(style_file):
    with style.panel(style_file, SETTINGS, "") as (figure, axes):
        figure.legend(handles=[], title="the title")
        style.legend(figure, axes.plot([0], [0], label="what"))
        (drawn,) = figure.legends
    assert drawn.get_title().get_text() == "the title"


@pytest.mark.parametrize(("available", "columns"), [(9.0, 4), (7.0, 2), (4.9, 1), (0.1, 1)])
def test_legend_has_as_many_columns_as_fit(available, columns):
    assert style.n_columns([1.0, 2.0, 3.0, 2.0], available) == columns


def test_no_entry_of_a_legend_stands_alone_below_a_full_row():
    assert style.n_columns([1.0] * 6, 5.0) == 3
    assert style.n_columns([1.0] * 5, 4.0) == 3
    assert style.n_columns([1.0] * 4, 4.0) == 4
    assert style.n_columns([], 4.0) == 1


def test_pale_colours_are_nearer_to_white():
    assert style.pale("#000000") == "#8c8c8c"
    assert style.pale("#ffffff") == "#ffffff"


def test_colours_are_those_of_the_keys_in_their_order():
    palette = {"a": "red", "b": "blue", "c": "green"}
    assert list(style.colours(palette, ["c", "a"]).items()) == [("c", "green"), ("a", "red")]


def test_every_missing_colour_is_listed():
    with pytest.raises(ConfigError) as told:
        style.colours({"a": "red"}, ["b", "a", "c"])
    assert str(told.value).split("\n")[0] == (
        "config/plotting.yaml: palette has no colour for b, c"
    )


def test_titles_of_fields_are_no_wider_than_these_and_the_panel_grows(pytestconfig):
    path = str(pytestconfig.rootpath / "config/paper.mplstyle")
    with style.panel(path, SETTINGS, "note") as (figure, axes):
        narrow, wide = style.widths(figure, axes, (1, 3))
        style.set_titles(figure, [narrow, wide], ["a network\nof many samples in here", "b"])
        assert narrow.get_title() == "a network\nof many samples\nin here"
        assert wide.get_title() == "b"
        assert figure.get_figheight() == pytest.approx(SETTINGS["height_in"] + 2 * style.LINE_IN)


PAPER = str(Path(__file__).parents[4] / "config/paper.mplstyle")


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


def test_a_logarithmic_axis_of_zeros_ends_somewhere(style_file, tmp_path):
    with style.panel(style_file, SETTINGS, "") as (figure, axes):
        axes.plot([1.0, 10.0], [0.0, 0.0])
        style.set_log(axes, "x", "y")
        style.save(figure, str(tmp_path / "a"), [])
        assert axes.get_ylim() == (0.1, 1.0)
        assert 0.0 < axes.get_xlim()[0] < axes.get_xlim()[1]


def test_a_panel_grows_until_its_names_leave_room_for_axes(style_file, tmp_path):
    with style.panel(style_file, SETTINGS, "") as (figure, axes):
        axes.barh(["x" * 80], [1.0])
        style.save(figure, str(tmp_path / "a"), [])
        assert figure.get_figwidth() > SETTINGS["width_in"]
        assert axes.get_position().width * figure.get_figwidth() > 0.1
