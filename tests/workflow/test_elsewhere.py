"""The workflow from an empty folder, as `snakedeploy deploy-workflow` leaves it.

The package comes from a wheel, the rules from a folder without `src/`, the configuration is a copy.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from full_checkout import FullCheckout

from epochwatt import __version__

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).resolve().parents[2]
SNAKEFILE = """\
configfile: "config/config.yaml"


module epochwatt:
    snakefile:
        "{source}/workflow/Snakefile"
    config:
        config


use rule * from epochwatt as epochwatt_*
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of packages in which the wheel is installed, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    uv = [sys.executable, "-m", "uv"]
    for words in (
        ["build", "--quiet", "--wheel", "--offline", "--out-dir", str(folder), str(REPOSITORY)],
        ["pip", "install", "--quiet", "--offline", "--no-deps", "--target", str(folder / "site")],
    ):
        wheels = [str(path) for path in folder.glob("*.whl")]
        subprocess.run([*uv, *words, *wheels], check=True)
    return folder / "site"


class Elsewhere(FullCheckout):
    """A folder with configuration and a Snakefile of its own, and a package that is installed."""

    def __init__(self, root: Path, site: Path) -> None:
        super().__init__(root)
        self.environment = {"PYTHONPATH": str(site)}

    def _snakemake(self) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--cores", "2"]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory, installed):
    """An empty folder after deployment, with two simulated runs selected."""
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(REPOSITORY / "workflow", folder / "source/workflow")
    root = folder / "own"
    (root / "workflow").mkdir(parents=True)
    (root / "workflow/Snakefile").write_text(SNAKEFILE.format(source=folder / "source"))
    shutil.copytree(REPOSITORY / "config", root / "config")
    checkout = Elsewhere(root, installed)
    sweep = [{"model": "lenet", "storage": ["ssd", "hdd"]}]
    study = {"backend": "jetson", "twin": "true", "device": "agx", "epochs": 2, "sweep": sweep}
    checkout.configure(drawn=("grid",), grid=study)
    checkout.write_yaml("config/config.yaml", {"studies": ["simulated"]})
    return checkout


def test_a_figure_of_simulated_runs_is_drawn_by_the_package_of_the_wheel(elsewhere, installed):
    told = elsewhere.command(sys.executable, str(installed / "bin/epochwatt"), "--version")
    assert told.status == 0
    assert __version__ in told.text
    figure = "results/figures/twin/fig02a.svg"
    rules = {job.split()[0].removeprefix("epochwatt_") for job in elsewhere.make(figure).jobs}
    assert rules >= {"count_workload", "plot_fig02", "simulate_run", "check_claims"}
    assert {row["model"] for row in elsewhere.table(figure.replace("svg", "csv"))} == {"lenet"}
    where = "import epochwatt; print(epochwatt.__file__)"
    assert str(installed) in elsewhere.command(sys.executable, "-c", where).text


def test_without_the_package_it_says_what_to_do(elsewhere):
    """It is installed here, so it is hidden."""
    (elsewhere.root / "blocked").mkdir()
    (elsewhere.root / "blocked/sitecustomize.py").write_text(
        "import sys\nsys.modules['epochwatt'] = None\n"
    )
    elsewhere.environment = {"PYTHONPATH": str(elsewhere.root / "blocked")}
    outcome = elsewhere.snakemake("--dry-run")
    assert outcome.status != 0
    assert "the package epochwatt is not installed" in outcome.text
