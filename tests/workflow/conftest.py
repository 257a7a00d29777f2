"""What the end-to-end tests share: checkouts to run, and one that has run."""

import itertools
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from board_checkout import BoardCheckout
from fleet_checkout import FleetCheckout
from full_checkout import FullCheckout, Outcome, configure_two_studies
from offline_page import a_browser
from playwright.sync_api import Browser
from slurm_cluster import FLEET, Node

from epochwatt.datasets.make import make_dataset

REPOSITORY = Path(__file__).resolve().parents[2]
NEEDED = ("Snakefile", "workflow", "profiles", "src", "config")


class Shop:
    """Makes checkouts in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._numbers = itertools.count()
        self.template = self.folder / "template"
        for name in NEEDED:
            source, target = REPOSITORY / name, self.template / name
            if source.is_dir():
                shutil.copytree(source, target)  # with the bytecode, else each start would compile
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for path in (self.template / "config/devices").glob("*.yaml"):
            with path.open("a") as device:  # it takes each first job a second, and LeNet fits
                device.write("\ncheck_memory: false\n")

    def _new_folder(self, source: Path | None = None) -> Path:
        root = self.folder / f"c{next(self._numbers)}"  # short: sockets lie below it
        if source is not None:
            shutil.copytree(source, root, ignore=shutil.ignore_patterns("pymp-*", ".venv"))
        return root

    def checkout(self, machine: Path | None = None) -> FullCheckout:
        """Return a new checkout."""
        return FullCheckout(self._new_folder(self.template), machine=machine)

    def board(self, kind: str) -> BoardCheckout:
        """Return a new checkout with a fake board."""
        return BoardCheckout(self._new_folder(self.template), kind)

    def fleet(self, nodes: tuple[Node, ...] = FLEET) -> FleetCheckout:
        """Return a new checkout with a fleet of fake boards."""
        return FleetCheckout(self._new_folder(self.template), nodes)

    def with_spaces(self) -> FullCheckout:
        """Return a new checkout, its interpreter inside, below a folder with spaces and an umlaut.

        Snakemake does not quote the interpreter of a script's command.
        """
        root = self.folder / "our l\u00e4b's disk/c"
        shutil.copytree(self.template, root)
        (root / ".venv").symlink_to(sys.prefix)
        checkout = FullCheckout(root)
        checkout.python = str(root / ".venv/bin/python")
        return checkout

    def configuration_alone(self) -> FullCheckout:
        """Return a folder with nothing but config/, whose workflow lies in another folder."""
        root = self._new_folder()
        shutil.copytree(self.template / "config", root / "config")
        return FullCheckout(root, workflow=self.template)

    def copy_of(self, checkout: FullCheckout) -> FullCheckout:
        """Return a checkout in the state of another, which stays as it is, in another folder."""
        return FullCheckout(self._new_folder(checkout.root))

    def provide_data(self, checkout: FullCheckout) -> None:
        """Put the data sets of a checkout's runs there, made once for all."""
        for run in checkout.runs():
            stored = self.folder / "stored" / run.data_folder
            if not stored.exists():
                make_dataset(stored, run.factors["recipe"])
            target = checkout.root / run.data_folder
            if not target.exists():
                shutil.copytree(stored, target)


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
    checkout = shop.with_spaces()
    configure_two_studies(checkout)
    outcome = checkout.make()
    drawn, beside = checkout.run_of("host-pipeline").id, checkout.run_of("beside").id
    return Finished(checkout, outcome, drawn, beside)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium, where there is one."""
    with a_browser() as browser:
        yield browser
