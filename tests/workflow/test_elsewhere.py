"""The workflow without a checkout: from a wheel, from a repository on GitHub, with --sdm conda.

Each shape makes a figure of two simulated runs, in an empty folder, with the package of a wheel.
`make dist` runs them all.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from full_checkout import FullCheckout, Outcome

from epochwatt import __version__

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]  # `make dist` runs them, too

REPOSITORY = Path(__file__).resolve().parents[2]
FIGURE = "results/figures/twin/fig02a.svg"
RULES = {"count_workload", "plot_fig02", "simulate_run", "check_claims"}
ADDRESS = "https://github.com/somebody/epochwatt"  # which git is told to look for on the disk
# as `snakedeploy deploy-workflow` writes it
DEPLOYED = """\
configfile: "config/config.yaml"


module epochwatt:
    snakefile:
        github("somebody/epochwatt", path="workflow/Snakefile", tag="v0")
    config:
        config


use rule * from epochwatt as epochwatt_*
"""
# stands for conda, and for what it installs: all that is asked for, but not this package
CONDA = """\
#!/bin/sh
case "$*" in
"info --json") echo '{{"conda_prefix": "{prefix}", "platform": "linux-64"}}' ;;
--version) echo conda 25.1.0 ;;
"config --get"*) echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
"env create"*)
  while [ "$1" != --prefix ]; do [ "$1" != --file ] || file=$2; shift; done
  {python} -m venv --without-pip "$2"
  cp "$file" "$2/asked.yaml"
  echo {packages} >"$(echo "$2"/lib/python3*/site-packages)/packages.pth" ;;
esac
"""
ACTIVATE = 'PATH="$1/bin:$PATH"; export PATH\n'


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of packages in which the wheel is installed, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    built = Path(os.environ.get("EPOCHWATT_DIST", folder))
    if built == folder:
        words = [str(REPOSITORY / ".ci/build-packages"), str(folder), "--wheel", "--offline"]
        subprocess.run(words, env=os.environ | {"PYTHON": sys.executable}, check=True)
    (wheel,) = built.glob("*.whl")
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run([*uv, "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


class Elsewhere(FullCheckout):
    """A folder with a configuration and a Snakefile of its own, and a package that is installed."""

    def __init__(self, root: Path, site: Path) -> None:
        super().__init__(root)
        self.environment = {"PYTHONPATH": str(site)}
        sweep = [{"model": "lenet", "storage": ["ssd", "hdd"]}]
        study = {"backend": "jetson", "twin": "true", "device": "agx", "epochs": 2, "sweep": sweep}
        self.configure(drawn=("grid",), grid=study)
        self.write_yaml("config/config.yaml", {"studies": ["simulated"]})

    def draw(self, *words: str) -> Outcome:
        """Draw the figure; all rules that it takes have to run, and nothing of this checkout."""
        command = [sys.executable, "-m", "snakemake", "--cores", "2", FIGURE, *words]
        outcome = self.command(*command)
        assert outcome.status == 0, outcome.text
        rules = {job.split()[0].removeprefix("epochwatt_") for job in outcome.jobs}
        assert rules >= RULES
        assert {row["model"] for row in self.table(FIGURE.replace("svg", "csv"))} == {"lenet"}
        assert str(REPOSITORY / "src") not in outcome.text
        return outcome


def initialised(installed: Path, folder: Path) -> Outcome:
    """Return what `epochwatt init FOLDER` of the installed wheel says."""
    words = [sys.executable, installed / "bin/epochwatt", "init", folder]
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(
        words, env=environment, cwd=folder.parent, capture_output=True, text=True, check=False
    )
    return Outcome(done.returncode, done.stdout + done.stderr)


@pytest.fixture
def laid_out(tmp_path, installed):
    """A folder that `epochwatt init` of the wheel made, with a small study."""
    told = initialised(installed, tmp_path / "own")
    assert told.status == 0, told.text
    assert "snakemake --profile profiles/host" in told.text
    assert yaml.safe_load((tmp_path / "own/config/config.yaml").read_text())["studies"] == "auto"
    again = initialised(installed, tmp_path / "own")
    assert again.status == 1
    assert "own is not empty\n  found: Snakefile, config, profiles\n  do: name a fol" in again.text
    return Elsewhere(tmp_path / "own", installed)


def test_a_wheel_lays_out_a_folder_and_its_workflow_runs_there(laid_out, installed):
    told = laid_out.command(sys.executable, str(installed / "bin/epochwatt"), "--version")
    assert told.text.strip() == __version__
    (laid_out.root / "src").mkdir()
    (laid_out.root / "src/my_figure.py").write_text(
        "from epochwatt.figures.sigmetrics2023.fig02 import draw  # noqa: F401\n"
    )
    plotting = laid_out.read_yaml("config/plotting.yaml")
    plotting["figures"]["fig02"]["draw"] = "my_figure.draw"  # a module of one's own is found
    laid_out.write_yaml("config/plotting.yaml", plotting)
    laid_out.draw("--profile", "profiles/host", "--logger-epochwatt-style", "snakemake")
    assert (laid_out.root / "measured/.workflow.lock").exists()
    assert laid_out.epochwatt("plan").status == 0


def test_jobs_in_a_deployed_environment_use_the_package_that_runs_the_workflow(
    laid_out, installed, tmp_path
):
    (tmp_path / "bin").mkdir()
    site = next(path for path in sys.path if path.endswith("site-packages"))
    words = {"prefix": tmp_path, "python": sys.executable, "packages": site}
    (tmp_path / "bin/conda").write_text(CONDA.format(**words))
    (tmp_path / "bin/activate").write_text(ACTIVATE)
    (tmp_path / "bin/conda").chmod(0o755)
    laid_out.environment["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    code = "import epochwatt, sys; print(sys.prefix, epochwatt.__file__)"
    (laid_out.root / "src").mkdir()
    (laid_out.root / "src/where.py").write_text(
        f"{code}\nfrom epochwatt.figures.sigmetrics2023.fig02 import draw  # noqa: F401\n"
    )
    plotting = laid_out.read_yaml("config/plotting.yaml")
    plotting["figures"]["fig02"]["draw"] = "where.draw"
    laid_out.write_yaml("config/plotting.yaml", plotting)
    outcome = laid_out.draw("--sdm", "conda")
    (environment,) = (laid_out.root / ".snakemake/conda").glob("*_")
    assert f"{environment} {laid_out.root}/.snakemake/epochwatt/epochwatt" in outcome.text
    assert (laid_out.root / ".snakemake/epochwatt/epochwatt").resolve() == installed / "epochwatt"
    asked = yaml.safe_load((environment / "asked.yaml").read_text())
    assert "pytorch=2.9.1" in asked["dependencies"]


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    """Variables with which git finds `ADDRESS` in a bare repository on the disk."""
    folder = tmp_path_factory.mktemp("remote")
    for name in ("workflow", "config"):
        shutil.copytree(REPOSITORY / name, folder / "tree" / name)
    shutil.copy(REPOSITORY / ".snakemake-workflow-catalog.yml", folder / "tree")
    commit = "git init -q -b main && git add . && git commit -qm all && git tag v0"
    who = {f"GIT_{w}_{k}": "x" for w in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    subprocess.run(commit, shell=True, cwd=folder / "tree", env=os.environ | who, check=True)
    subprocess.run(
        ["git", "clone", "--quiet", "--bare", "tree", "bare.git"], cwd=folder, check=True
    )
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{folder}/bare.git.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


@pytest.fixture
def deployed(tmp_path, installed, remote):
    """A folder as snakedeploy leaves it."""
    (tmp_path / "own/workflow").mkdir(parents=True)
    (tmp_path / "own/workflow/Snakefile").write_text(DEPLOYED)
    shutil.copytree(REPOSITORY / "config", tmp_path / "own/config")
    checkout = Elsewhere(tmp_path / "own", installed)
    checkout.environment |= remote
    return checkout


def test_a_module_of_a_repository_draws_with_the_package_of_the_wheel(deployed):
    """The repository is fetched by git, as from GitHub."""
    deployed.draw()


@pytest.mark.slow
def test_the_small_configuration_runs(fresh):
    """`.test/` holds what Snakemake's catalogue and whoever changes a rule try: about a minute."""
    shutil.copytree(REPOSITORY / ".test/config", fresh.root / ".test/config", symlinks=True)
    outcome = fresh.command(
        sys.executable, "-m", "snakemake", "--cores", "2", "--directory", ".test"
    )
    assert outcome.status == 0, outcome.text
    assert "train_epoch" in " ".join(outcome.measuring)
    for path in ("index.html", "figures/host/fig02a.svg", "figures/twin/fig02a.svg"):
        assert (fresh.root / ".test/results" / path).is_file()


def test_without_the_package_it_says_what_to_do(deployed):
    """It is installed here, so it is hidden."""
    (deployed.root / "blocked").mkdir()
    (deployed.root / "blocked/sitecustomize.py").write_text(
        "import sys\nsys.modules['epochwatt'] = None\n"
    )
    deployed.environment["PYTHONPATH"] = str(deployed.root / "blocked")
    outcome = deployed.command(sys.executable, "-m", "snakemake", "--cores", "2", "--dry-run")
    assert outcome.status != 0
    assert "the package epochwatt is not installed" in outcome.text
