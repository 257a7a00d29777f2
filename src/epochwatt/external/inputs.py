"""Where the measurements are that the checks are about, and what is simulated beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from epochwatt.errors import ConfigError
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.sweeps.public.registry import VARIABLE, Registry, load_registry, originals
from epochwatt.twin.inputs.twin import Twin


class NotHereError(ConfigError):
    """A measurement that epochwatt may not pass on, and that the user has no copy of."""


@dataclass(frozen=True)
class Inputs:
    """What all checks read.

    Attributes
    ----------
    root : the checkout
    folder : the user's folder of others' repositories; None: none is named
    twin : simulated boards and counted networks
    """

    root: Path
    folder: Path | None
    twin: Twin
    _read: dict[str, list[ModeTable]] = field(default_factory=dict, init=False)

    @cached_property
    def registry(self) -> Registry:
        """The public sweeps that are known."""
        return load_registry(self.root)

    def tables(self, name: str) -> list[ModeTable]:
        """Return the mode tables of a public sweep, without rows that do not count; each read once.

        Raises
        ------
        NotHereError : its licence is none, and the user's folder lacks it
        ConfigError : it cannot be read
        """
        if not self.registry.is_shipped(name):
            sweep, source = self.registry.sweeps[name], self.registry.source(name)
            if self.folder is None or not originals(sweep, self.folder):
                raise not_here(source.repository)
        if name not in self._read:
            tables = find_tables(name, self.root, self.folder)
            self._read[name] = [table.valid() for table in tables]
        return self._read[name]

    def files(self, patterns: Sequence[str], repository: str) -> list[Path]:
        """Return others' files in the user's folder or in the folders in it.

        Raises
        ------
        NotHereError : there are none
        """
        places = [self.folder, *sorted(self.folder.glob("*/"))] if self.folder else []
        for place in places:
            paths = [path for pattern in patterns for path in sorted(place.glob(pattern))]
            if paths:
                return paths
        raise not_here(repository)


def not_here(repository: str) -> NotHereError:
    """Return the error of a measurement that is not here, with where to get it."""
    return NotHereError(
        f"not available: no licence, so epochwatt may not pass it on; clone {repository} into a "
        f"folder and name that folder with {VARIABLE}"
    )
