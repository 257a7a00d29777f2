"""Opening and saving a panel; the palette."""

from pathlib import Path

import pytest

from epochwatt.figures.common import style

SETTINGS = {"title": "a panel", "width_in": 4.0, "height_in": 3.0}
PAPER = str(Path(__file__).parents[4] / "config/paper.mplstyle")


@pytest.fixture
def style_file(tmp_path):
    path = tmp_path / "a.mplstyle"
    path.write_text("font.size: 17\nsavefig.dpi: 50\nfigure.dpi: 50\n", "utf-8")
    return str(path)


def test_save_writes_three_files_into_a_new_folder(style_file, tmp_path):
    rows = [{"a": 1.5, "b": None}, {"a": "x, y", "c": 2}]
    with style.panel(style_file, SETTINGS, "") as (figure, _):
        style.save(figure, str(tmp_path / "new/deep/fig"), rows)
    assert sorted(p.name for p in (tmp_path / "new/deep").iterdir()) == [
        *("fig.csv", "fig.png", "fig.svg")
    ]
    assert (tmp_path / "new/deep/fig.csv").read_text("utf-8") == 'a,b,c\n1.5,,\n"x, y",,2\n'


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
