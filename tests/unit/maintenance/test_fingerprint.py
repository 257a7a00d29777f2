"""A rule's fingerprint: what changes it and what does not."""

import importlib
import sys
from pathlib import Path

import pytest

from epochwatt.maintenance import fingerprint as module
from epochwatt.maintenance.fingerprint import fingerprint, modules_behind
from epochwatt.study.settings import drawing_module, load_settings

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

    def take(*modules, script=""):
        for cached in (module._path_of, module._place_of, module._is_covered, module._parsed):
            cached.cache_clear()
        importlib.invalidate_caches()
        return fingerprint(*(modules or ([] if script else ["tiny.figure"])), script=script)

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


def test_a_column_s_description_changes_nothing_but_its_unit_and_label_do(tiny, taken):
    (tiny / "columns.py").write_text("WAIT = 1\n")
    (tiny / "columns.csv").write_text("epochs,wait_s,float,s,a wait,,blocked on it\n")
    (tiny / "flags.csv").write_text("stopped,invalidates,it stood still,\n")
    edit(tiny / "table.py", "from tiny.names", "from tiny.columns")
    before = taken()
    edit(tiny / "columns.csv", "blocked on", "waited for")
    edit(tiny / "flags.csv", "stood still", "was stopped")
    assert taken() == before
    for meaningful in (",s,", ",a wait,"):
        edit(tiny / "columns.csv", meaningful, ",ms,")
        assert taken() != before
        before = taken()


def test_it_is_the_same_in_another_folder(tiny, taken, tmp_path, monkeypatch):
    before = taken()
    (tmp_path / "elsewhere").mkdir()
    tiny.rename(tmp_path / "elsewhere" / "tiny")
    make_importable(tmp_path / "elsewhere", monkeypatch)
    forget_imports()
    assert taken() == before


def test_a_script_counts_with_all_that_it_imports_wherever_it_lies(tiny, taken, tmp_path):
    script = tmp_path / "plot.py"
    script.write_text("from tiny.table import read\n\nread()\n")
    before = taken(script=str(script))
    script.rename(tmp_path / "moved.py")
    script = tmp_path / "moved.py"
    assert taken(script=str(script)) == before
    assert modules_behind(script=str(script)) == {"tiny.table", "tiny.names"}
    edit(script, "read()\n", "read() + 1\n")
    assert taken(script=str(script)) != before
    edit(tiny / "names.py", 'COLUMN = "a"', 'COLUMN = "b"')
    assert taken(script=str(script)) != before


def test_a_module_of_the_users_own_is_found_where_python_finds_it(taken, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/own_figure.py").write_text("from tiny import table\n")
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    assert modules_behind("own_figure") == {"own_figure", "tiny.table", "tiny.names"}


# -- the rules of this workflow ------------------------------------------------------------------

REPOSITORY = Path(__file__).parents[3]
SCRIPTS = sorted((REPOSITORY / "workflow/scripts").glob("*.py"))
FIGURES = load_settings(root=REPOSITORY).plotting.figures
# rule -> the modules that its fingerprint covers; workflow/rules/ name none by hand
COVERED = {
    path.stem: modules_behind(script=str(path)) for path in SCRIPTS if path.stem != "plot_figure"
}
COVERED |= {
    f"plot_{name}": modules_behind(
        drawing_module(figure), script=str(REPOSITORY / "workflow/scripts/plot_figure.py")
    )
    for name, figure in FIGURES.items()
}

COVERED["simulate_run"] = modules_behind("epochwatt.twin.__main__")  # its command

# what is made of simulated boards or held against them, so it depends on the simulator
SIMULATED = {
    *("simulate_run", "simulate_idle", "simulate_sweep", "check_claims", "score_predictions"),
    "simulate_rounds",  # of fleets of simulated boards
    "simulate_schedules",  # the tables of config/schedule.yaml, all of a simulated board
    *("validate_twin", "simulate_ceilings"),
    "tabulate_setup",  # Table 1 shows what they are made of
}
MODES = {
    "choose_power_modes",
    "fit_epoch_time",
    "fit_epoch_energy",
    "predict_modes",
}  # from clocks a board has
MODES |= {"score_sweep", "judge_transfer", "learn_schedules", "score_schedules"}
MODES |= {"play_schedules", "replan_schedules"}
NETWORKS = {"make_dataset", "count_workload", "count_work"}  # write its data; count its networks
CONFIGURED = {"count_workload", "count_work", "collect_powertrain"}
NETWORKS |= {
    "simulate_schedules",
    "simulate_rounds",
}  # makes its sweeps itself, with all that a sweep checks
NETWORKS |= {"replan_schedules", "play_schedules"}  # by the interleaver's own rule and traces
EDITED = [
    (".".join(path.relative_to(REPOSITORY / "src").with_suffix("").parts), rules)
    for folder, rules in (
        ("board/training", NETWORKS),
        ("board/telemetry", SIMULATED),
        ("board/device", SIMULATED | MODES | CONFIGURED),  # they read the configuration
        ("twin", SIMULATED | {"count_workload", "count_work"}),
    )
    for path in sorted((REPOSITORY / "src/epochwatt" / folder).rglob("*.py"))
    if path.stem != "references"
]
# finds networks and prediction methods of one's own
EDITED.append(("epochwatt.board.training.references", NETWORKS | MODES | {"score_predictions"}))


@pytest.mark.parametrize(("edited", "rules"), EDITED, ids=[edited for edited, _ in EDITED])
def test_an_edited_module_that_measures_or_simulates_reruns_nothing_that_shows_runs(edited, rules):
    """Else an edited decoder, sensor or simulator would redraw figures of measured runs."""
    assert {rule for rule, modules in COVERED.items() if edited in modules} <= rules


def test_every_rule_with_a_script_covers_more_than_what_adapters_share():
    assert len(COVERED) == len(SCRIPTS) - 1 + len(FIGURES) + 1
    assert {rule for rule, modules in COVERED.items() if len(modules) < 4} == set()
