"""The shape of the code: what runs on the board, how long things may be, what a rule has.

Who may import whom is held by import-linter (`make lint`, pyproject.toml).
"""

import ast
import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "src"
FILES = sorted(SOURCE.glob("epochwatt/**/*.py"))
SCRIPTS = sorted((REPOSITORY / "workflow/scripts").glob("*.py"))
RULE_FILES = sorted((REPOSITORY / "workflow/rules").glob("*.smk"))

BOARD_LAYERS = {"", "columns", "errors", "board"}
# imported when BERT and QLoRA are built: a board may do without
OF_ONE_NETWORK = {"transformers", "bitsandbytes"}
BOARD_LIBRARIES = {"torch", "torchvision", "numpy", "PIL", "psutil", "pynvml", "jtop"}


def layer(module):
    """Return the part of a module's name that says its layer."""
    return [*module.split("."), ""][1]


def module_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name):
    path = SOURCE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


@functools.cache
def tree(path):
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def imports(path):
    """Return all modules that a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: the fingerprint of a rule follows no relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update({name for name in names if is_module(name)} or {node.module})
    return found


def shown(path, name=""):
    return f"{path.relative_to(REPOSITORY)} {name}".strip()


BOARD_FILES = [path for path in FILES if layer(module_of(path)) in BOARD_LAYERS]


def board_imports():
    """Return (file, top-level module) of everything board-side files import from elsewhere."""
    found = [(path, name.split(".")[0]) for path in BOARD_FILES for name in imports(path)]
    return [(path, name) for path, name in found if name != "epochwatt"]


def test_no_file_points_to_what_a_clone_does_not_have():
    """A source is a public one, or a page of docs/."""
    paths = [*FILES, *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("*.md")]
    texts = {str(path.relative_to(REPOSITORY)): path.read_text("utf-8") for path in paths}
    assert [
        name
        for name, text in texts.items()
        if re.search(r"shared/(ref|data|rev)|jetson-facts", text)
    ] == []


def test_the_package_has_never_heard_of_snakemake():
    assert [
        shown(p) for p in FILES if any(n.split(".")[0] == "snakemake" for n in imports(p))
    ] == []


def test_rows_of_epochs_need_no_library_but_numpy():
    files = [path for path in FILES if layer(module_of(path)) == "epochs"]
    allowed = {"epochwatt", "numpy", *sys.stdlib_module_names}
    assert {n.split(".")[0] for path in files for n in imports(path)} - allowed == set()
    assert files


def test_board_side_files_say_so_in_their_first_line_and_no_other_does():
    first = {p: (ast.get_docstring(tree(p)) or "").lower() for p in FILES}
    says = {path for path, text in first.items() if "board side" in text.split("\n")[0]}
    assert says == set(BOARD_FILES)


def test_board_side_files_import_only_what_a_board_with_python_3_6_has():
    newer = {"dataclasses", "__future__"}  # a backport, and `annotations`, are not on the board
    allowed = (BOARD_LIBRARIES | OF_ONE_NETWORK | set(sys.stdlib_module_names)) - newer
    assert [shown(*found) for found in board_imports() if found[1] not in allowed] == []


def test_board_side_files_have_the_grammar_of_python_3_6():
    for path in BOARD_FILES:
        ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 6))


@pytest.fixture(scope="module")
def python36():
    """A Python 3.6, the board's own; skipped where there is none."""
    there = [shutil.which("python3.6"), *Path.home().glob(".pyenv/versions/3.6*/bin/python3.6")]
    for command in filter(None, there):
        told = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
        if told.stdout.startswith("Python 3.6."):
            return command
    pytest.skip("no Python 3.6 on this machine")


def test_board_side_files_compile_with_python_3_6(python36):
    code = "import sys\nfor p in sys.argv[1:]: compile(open(p, encoding='utf-8').read(), p, 'exec')"
    done = subprocess.run(
        [python36, "-c", code, *map(str, BOARD_FILES)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_python_3_6_has_the_standard_library_that_board_side_files_use(python36):
    names = sorted({name for _, name in board_imports()} - BOARD_LIBRARIES - OF_ONE_NETWORK)
    code = f"import {', '.join(names)}"
    done = subprocess.run([python36, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert names


def rules():
    """Return name -> text of each rule's body, without its docstring.

    The rules of figures, made in a loop, are one: `plot_figure`.
    """
    pattern = r"^ *rule ?(\w*):\n((?:[ \t]+.*\n|\n)+)"
    found = [m for path in RULE_FILES for m in re.findall(pattern, path.read_text("utf-8"), re.M)]
    found = [(name or "plot_figure", body) for name, body in found]
    return {name: re.sub(r'^\s*""".*?"""\n', "", body, flags=re.S) for name, body in found}


def test_only_rules_that_measure_are_sent_to_a_fleet():
    """`profiles/slurm` wants a whole board for them; all others run beside Snakemake."""
    jobs = {
        name: body for name, body in rules().items() if re.search("^ *(script|shell):", body, re.M)
    }
    sent = {name for name, body in jobs.items() if "localrule: True" not in body}
    assert sent == {"train_epoch", "measure_idle", "measure_modes", "measure_ceilings"}
    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/config.yaml").read_text("utf-8"))
    assert set(profile["set-resources"]) == set(profile["set-threads"]) == sent
    assert all("constraint=" in jobs[name] for name in sent)


def test_rules_with_a_script_have_a_log_and_an_adapter_of_their_name():
    scripted = {name: body for name, body in rules().items() if "script:" in body}
    assert [name for name, body in scripted.items() if f"../scripts/{name}.py" not in body] == []
    assert [name for name, body in scripted.items() if "log:" not in body] == []
    assert sorted(scripted) == [path.stem for path in SCRIPTS]


def test_a_fingerprint_is_that_of_the_code_that_the_rule_runs():
    """Data sets are told apart by their recipe; editing what measures must rerun nothing."""
    for name, body in rules().items():
        coded = re.findall(r'\b(?:code_of|fingerprint)\(\s*"([\w.]+)"', body)
        if name in (
            "make_dataset",
            "train_epoch",
            "measure_idle",
            "measure_modes",
            "measure_ceilings",
        ):
            assert coded == [], name
        elif "shell:" in body:
            assert coded == [f"{module}.__main__" for module in re.findall(r"-m ([\w.]+)", body)]
            assert len(coded) == 1, name
        elif "script:" in body:
            assert coded == re.findall(r"/(\w+\.py)", body), name


def test_no_rule_runs_python_in_place():
    assert [name for name, body in rules().items() if re.search(r"^\s+run:", body, re.M)] == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_adapter_only_maps(path):
    assert "pandas" not in imports(path)
    branches = (ast.For, ast.While, ast.IfExp, ast.Try, ast.ListComp, ast.DictComp)
    body = tree(path).body[:-1]  # the last statement calls main
    nodes = [node for part in body for node in ast.walk(part)]
    assert [node for node in nodes if isinstance(node, (ast.If, *branches))] == []


def test_the_snakefile_imports_nothing_that_draws_fits_or_trains():
    """Each start of the workflow would wait for it, and each test that starts one."""
    texts = [path.read_text("utf-8") for path in RULE_FILES]
    modules = {
        m for text in texts for m in re.findall(r"^from (epochwatt[\w.]*) import", text, re.M)
    }
    assert modules
    heavy = ["matplotlib", "pandas", "scipy", "sklearn", "torch"]
    check = f"import sys, {', '.join(modules)}; print(*set({heavy}).intersection(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
