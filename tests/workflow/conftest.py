"""What the end-to-end tests share: checkouts to run, one that has run, one measured undisturbed."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from board_checkout import BoardCheckout
from fleet_checkout import FleetCheckout
from full_checkout import FullCheckout, Outcome, configure_long_runs, configure_two_studies
from offline_page import a_browser
from playwright.sync_api import Browser
from slurm_cluster import FLEET, Node

from epochwatt.datasets.make import make_dataset

REPOSITORY = Path(__file__).resolve().parents[2]
NEEDED = ("Snakefile", "workflow", "profiles", "src", "config")


class Shop:
    """Makes checkouts.

    Parameters
    ----------
    folder : where they lie
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._numbers = itertools.count()
        self.template = self.folder / "template"
        for name in NEEDED:
            _copy(REPOSITORY / name, self.template / name)

    def _new_folder(self) -> Path:
        return self.folder / f"c{next(self._numbers)}"  # short: sockets lie below it

    def checkout(self, machine: Path | None = None) -> FullCheckout:
        """Return a new checkout."""
        root = self._new_folder()
        shutil.copytree(self.template, root)
        return FullCheckout(root, machine=machine)

    def board(self, kind: str) -> BoardCheckout:
        """Return a new checkout with a fake board."""
        root = self._new_folder()
        shutil.copytree(self.template, root)
        return BoardCheckout(root, kind)

    def fleet(self, nodes: tuple[Node, ...] = FLEET) -> FleetCheckout:
        """Return a new checkout with a fleet of fake boards."""
        root = self._new_folder()
        shutil.copytree(self.template, root)
        return FleetCheckout(root, nodes)

    def undisturbed(self) -> FullCheckout:
        """Measure both long runs in a folder with nothing but config/.

        The workflow that runs there lies in another folder: that has to work as well.
        """
        root = self._new_folder()
        shutil.copytree(self.template / "config", root / "config")
        checkout = FullCheckout(root, workflow=self.template)
        configure_long_runs(checkout, 1, 3)
        self.provide_data(checkout)
        checkout.make("runs", "tables")
        return checkout

    def copy_of(self, checkout: FullCheckout) -> FullCheckout:
        """Return a checkout in the state of another, which stays as it is."""
        root = self._new_folder()
        shutil.copytree(checkout.root, root, ignore=shutil.ignore_patterns("pymp-*"))
        return FullCheckout(root)

    def moved(self, checkout: FullCheckout) -> FullCheckout:
        """Rename a checkout's folder, with all that is in it."""
        root = self._new_folder()
        checkout.root.rename(root)
        return FullCheckout(root)

    def provide_data(self, checkout: FullCheckout) -> None:
        """Put the data sets of a checkout's runs there, made once for all."""
        for run in checkout.runs():
            stored = self.folder / "stored" / run.data_folder
            if not stored.exists():
                make_dataset(stored, run.factors["recipe"])
            target = checkout.root / run.data_folder
            if not target.exists():
                shutil.copytree(stored, target)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)  # with the bytecode, else each start would compile it
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> Shop:
    return Shop(tmp_path_factory.mktemp("w"))


@pytest.fixture
def fresh(shop) -> FullCheckout:
    """A new checkout, with the configuration of the repository."""
    return shop.checkout()


class Finished(NamedTuple):
    """A checkout after its first run: two epochs of a run that is drawn, one of another."""

    checkout: FullCheckout
    first_run: Outcome
    drawn: str
    beside: str


@pytest.fixture(scope="session")
def finished(shop) -> Finished:
    """Run the workflow for the first time, data sets included; whoever changes it, copies it."""
    checkout = shop.checkout()
    configure_two_studies(checkout)
    outcome = checkout.make()
    drawn, beside = checkout.run_of("host-pipeline").id, checkout.run_of("beside").id
    return Finished(checkout, outcome, drawn, beside)


@pytest.fixture(scope="session")
def undisturbed(shop) -> FullCheckout:
    """Both long runs, of one epoch a job and of three, measured without a disturbance."""
    return shop.undisturbed()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium, where there is one."""
    with a_browser() as browser:
        yield browser
