"""The wheel in an empty environment: numpy, a torch of its own, and the tutorial's first script."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
OTHERS = ("3.8", "3.9", "3.10", "3.12", "3.13", "3.14")
FIRST_NUMBER_S = 60.0
SHIPPED = ("workflow/Snakefile", "config/config.yaml", "profiles/default/config.yaml")
LOOP = """
import time
began = time.perf_counter()
from epochwatt import EpochMonitor
import_s = time.perf_counter() - began
import json, sys
has_numpy = "numpy" in sys.modules
monitor = EpochMonitor("r", resume=True, batch_size=4)
for _ in monitor.epoch(range(3)):
    with monitor.step(): time.sleep(0.01)
monitor.begin_window("w")
last, window = monitor.last, monitor.end_window("w")
works = last.n_minibatches == 3 and last.folder is not None and window.time > 0
print(json.dumps([import_s, has_numpy, works]))
"""


pytestmark = pytest.mark.thorough  # `make dist` runs them, too


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = Path(os.environ.get("EPOCHWATT_DIST") or tmp_path_factory.mktemp("wheel"))
    if "EPOCHWATT_DIST" not in os.environ:  # where `make dist` built it
        words = [ROOT / ".ci/build-packages", folder, "--wheel", "--offline"]
        subprocess.run(words, env=os.environ | {"PYTHON": sys.executable}, check=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_source_archive_makes_the_same_wheel(wheel, tmp_path):
    build = [ROOT / ".ci/build-packages", tmp_path / "source", "--sdist", "--offline"]
    subprocess.run(build, env=os.environ | {"PYTHON": sys.executable}, check=True)
    (archive,) = (tmp_path / "source").glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    (tree,) = (tmp_path / "unpacked").iterdir()
    words = [UV, "build", "--wheel", "--offline", "--quiet", "--out-dir", tmp_path, tree]
    subprocess.run(words, check=True)
    (again,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as first, ZipFile(again) as second:
        assert first.namelist() == second.namelist()
        assert {f"epochwatt/project/{name}" for name in SHIPPED} <= set(first.namelist())
        modules = [n for n in first.namelist() if re.search(r"(^|/)tests?/|\.pyc$", n)]
    assert not modules


def distributions(*names):
    """Return the installed distributions of these names and of all that they need."""
    found = {}
    while names:
        found |= {name: metadata.distribution(name) for name in names}
        needs = (need for d in found.values() for need in d.requires or () if "extra" not in need)
        wanted = {re.match(r"[\w.-]+", need)[0] for need in needs}
        installed = {d.metadata["Name"].lower().replace("_", "-") for d in metadata.distributions()}
        names = {n.lower().replace("_", "-") for n in wanted} & installed - found.keys()
    return found.values()


def environment(folder, linked, wheel=None):
    """Make an environment of packages of ours, linked, and the wheel; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    version = "python{}.{}".format(*sys.version_info)
    site = folder / "lib" / version / "site-packages"
    if wheel:
        shutil.unpack_archive(wheel, site, "zip")
    for distribution in distributions(*linked):
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
            if top != "__pycache__" and not (site / top).exists():
                (site / top).symlink_to(distribution.locate_file(top))
    return folder / "bin/python"


def run(words, folder):
    environ = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        list(map(str, words)), cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_first_number_of_an_own_script_comes_within_a_minute(wheel, tmp_path):
    python = environment(tmp_path / "venv", ("numpy", "torch"), wheel)
    assert run([python, "-c", "import pandas"], tmp_path).returncode == 1
    page = (ROOT / "docs/tutorials/own-script.md").read_text("utf-8")
    script = re.search(r"```python\n(.*?)```", page, re.S)[1]
    (tmp_path / "train.py").write_text(script)
    began_s = time.monotonic()
    done = run([python, "train.py"], tmp_path)
    assert time.monotonic() - began_s < FIRST_NUMBER_S
    assert re.match(r"epoch 0: \d+\.\d\d s, \d+ % waiting for data; ", done.stdout), done.stderr
    assert len(list(tmp_path.glob("measured/*/epoch-*/record.json"))) == 2
    words = [python, "-m", "epochwatt", "run", "--json", "whole.json", "--", python, "train.py"]
    done = run(words, tmp_path)
    assert done.stdout.startswith("epoch 0: ")
    assert re.search(r"python: \d+\.\d\d s; ", done.stderr)
    whole = json.loads((tmp_path / "whole.json").read_text())
    assert whole["status"] == 0
    assert 0 < whole["time"] < FIRST_NUMBER_S


@pytest.mark.slow
def test_the_catalogues_checks_pass_with_nothing_but_snakemake(tmp_path):
    """What Snakemake's catalogue of workflows runs in a checkout: its list has a row for each."""
    python = environment(tmp_path / "venv", ("snakemake", "snakefmt"))
    assert run([python, "-c", "import numpy"], tmp_path).returncode == 1
    lint = run([python, "-m", "snakemake", "--lint"], ROOT)
    assert lint.returncode == 0, lint.stderr
    snakefiles = ["workflow/Snakefile", *sorted(ROOT.glob("workflow/rules/*.smk"))]
    style = run([python, "-m", "snakefmt", "--check", "-v", *snakefiles], ROOT)
    assert style.returncode == 0, style.stderr


def python_of(version):
    """Return an interpreter of a version, or skip."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return pyenv[-1] if pyenv else shutil.which(f"/usr/bin/python{version}")


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("version", OTHERS)
def test_it_works_on_every_python_that_is_here(wheel, tmp_path, version):
    found = python_of(version)
    if found is None:
        pytest.skip(f"no Python {version} is here")
    python = tmp_path / "venv/bin/python"
    subprocess.run([UV, "venv", "--quiet", "--python", found, tmp_path / "venv"], check=True)
    words = [UV, "pip", "install", "--quiet", "--offline", "--python", python, wheel]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip(f"no numpy for Python {version} in uv's cache")
    done = run([python, "-c", LOOP], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout)[1:] == [False, True]
    done = run(
        [python, "-m", "epochwatt", "run", "--", python, "-c", "raise SystemExit(3)"], tmp_path
    )
    assert done.returncode == 3
    assert re.match(r".*python: \d+\.\d\d s; ", done.stderr)
    assert run([python, "-m", "epochwatt", "run"], tmp_path).returncode == 2
    done = run([python, "-m", "epochwatt", "summary"], tmp_path)
    assert done.returncode == 1
    assert 'pip install "epochwatt[workflow]"' in done.stderr
