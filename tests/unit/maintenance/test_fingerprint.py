"""A rule's fingerprint: what changes it and what does not."""

import importlib
import sys
from pathlib import Path

import pytest
import yaml

from epochwatt.maintenance import fingerprint as module
from epochwatt.maintenance.fingerprint import fingerprint, imports_of

FILES = {
    "__init__.py": "",
    "figure.py": "from tiny import table\n\n\ndef draw():\n    return table.read() + 1\n",
    "table.py": "def read():\n    from tiny.names import COLUMN\n\n    return len(COLUMN)\n",
    "names.py": '"""Names."""\n\nCOLUMN = "a"\n',
    "other.py": "import tiny.names\n\nLOST = tiny.names.COLUMN\n",
    "inner/__init__.py": "",
    "inner/deep.py": "import tiny.names as names\n",
}


def make_importable(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root))
    monkeypatch.setattr(module, "ROOT", root, raising=False)


def forget_imports():
    for name in [n for n in sys.modules if n.split(".")[0] == "tiny"]:
        del sys.modules[name]


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A package `tiny`: figure imports table, which imports names inside a function."""
    for name, text in FILES.items():
        path = tmp_path / "tiny" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    monkeypatch.setattr(module, "PACKAGE", "tiny")
    make_importable(tmp_path, monkeypatch)
    yield tmp_path / "tiny"
    forget_imports()


@pytest.fixture
def taken(tiny):
    """Return a function that takes the fingerprint of `tiny.figure` as a new process would."""

    def take(*modules):
        for cached in (module._path_of, module._code_of, module.imports_of):
            cached.cache_clear()
        importlib.invalidate_caches()
        return fingerprint(*(modules or ["tiny.figure"]))

    return take


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("figure.py", "+ 1", "+ 2"),
        ("table.py", "len(COLUMN)", "len(COLUMN) + 0"),
        ("names.py", 'COLUMN = "a"', 'COLUMN = "b"'),  # two imports away, inside a function
        ("names.py", 'COLUMN = "a"', 'COLUMN = "a"\nMORE = 1'),
    ],
)
def test_edited_code_changes_it(file, old, new, tiny, taken):
    before = taken()
    edit(tiny / file, old, new)
    assert taken() != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("figure.py", "def draw", "# why\ndef draw"),
        ("figure.py", "():\n    return", '():\n    """Draw it."""\n    return'),
        ("figure.py", "\n\n\ndef", "\n\n\n\n\ndef"),
        ("figure.py", "table.read() + 1", "(\n        table.read()\n        + 1\n    )"),
        ("names.py", '"""Names."""', '"""Names, of columns."""'),
        ("names.py", '"""Names."""\n', ""),
        ("names.py", '"a"', "'a'"),
    ],
)
def test_comment_docstring_and_layout_change_nothing(file, old, new, tiny, taken):
    before = taken()
    edit(tiny / file, old, new)
    assert taken() == before


def test_edit_elsewhere_changes_nothing(tiny, taken):
    before = taken()
    edit(tiny / "other.py", "LOST", "FOUND")
    assert taken() == before


def test_code_that_moves_to_another_module_changes_it(tiny, taken):
    before = taken()
    (tiny / "moved.py").write_text((tiny / "names.py").read_text("utf-8"), "utf-8")
    edit(tiny / "table.py", "tiny.names", "tiny.moved")
    assert taken() != before


def test_it_is_the_same_in_another_folder(tiny, taken, tmp_path, monkeypatch):
    before = taken()
    (tmp_path / "elsewhere").mkdir()
    tiny.rename(tmp_path / "elsewhere" / "tiny")
    make_importable(tmp_path / "elsewhere", monkeypatch)
    forget_imports()
    assert taken() == before


def test_taking_it_imports_nothing(taken):
    """Else parsing the Snakefile would cost what pandas, matplotlib and torch cost."""
    taken()
    assert [name for name in sys.modules if name.startswith("tiny.")] == []


def test_order_of_the_modules_does_not_matter(taken):
    assert taken("tiny.figure", "tiny.other") == taken("tiny.other", "tiny.figure")


def test_more_modules_give_another_one(taken):
    assert taken("tiny.figure", "tiny.other") != taken("tiny.figure")


def test_it_is_16_hex_digits(taken):
    assert len(taken()) == 16
    assert int(taken(), 16) >= 0


def test_unknown_module_is_an_error(taken):
    with pytest.raises(ValueError, match=r"tiny\.nothing"):
        taken("tiny.nothing")


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("figure.py", {"tiny.table"}),  # from package import module
        ("table.py", {"tiny.names"}),  # from module import name
        ("inner/deep.py", {"tiny.names"}),  # import module as name
        ("names.py", set()),
    ],
)
def test_imports_are_followed_however_they_are_written(file, found, tiny):
    assert imports_of(tiny / file) == found


def test_imports_of_others_are_not_followed(tiny):
    (tiny / "foreign.py").write_text("import numpy as np\nfrom os import path\n", "utf-8")
    assert imports_of(tiny / "foreign.py") == set()


def test_figure_of_this_package_depends_on_its_columns():
    """The real thing: the modules that decide what figure 2 shows are among its imports."""
    from epochwatt.figures.common import runs
    from epochwatt.figures.sigmetrics2023 import fig02

    assert "epochwatt.figures.common.runs" in imports_of(module._path_of(fig02.__name__))
    assert "epochwatt.fields" in imports_of(module._path_of(runs.__name__))


REPOSITORY = Path(__file__).parents[3]
PACKAGE = REPOSITORY / "src/epochwatt"
# what is shown of measured runs: figures, pages and the tables behind them
SHOWING = [
    *sorted(
        f"epochwatt.figures.{path.parent.name}.{path.stem}"
        for paper in ("sigmetrics2023", "hipcw2021")
        for path in (PACKAGE / "figures" / paper).glob("[a-z]*.py")
    ),
    *(
        "epochwatt.pages.summarise",
        "epochwatt.pages.show_claims",
        "epochwatt.pages.show_configuration",
    ),
    *(
        "epochwatt.figures.tables.tabulate_text_only",
        "epochwatt.analysis.collect_study",
        "epochwatt.epochs.collect",
    ),
]


@pytest.mark.parametrize("layer", ["training", "telemetry", "device", "twin"])
@pytest.mark.parametrize("shown", SHOWING)
def test_what_is_shown_depends_on_no_code_that_measures_or_simulates(shown, layer):
    """Else an edited decoder, sensor or simulator would redraw figures of measured runs."""
    used = module._closure((shown,))
    assert sorted(name for name in used if name.startswith(f"epochwatt.{layer}.")) == []
    assert len(used) > 1


def test_every_figure_of_the_configuration_is_among_them():
    plotting = yaml.safe_load((REPOSITORY / "config/plotting.yaml").read_text("utf-8"))
    drawn = {figure["draw"].rpartition(".")[0] for figure in plotting["figures"].values()}
    assert drawn <= set(SHOWING)
