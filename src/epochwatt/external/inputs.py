"""Where the measurements are that the checks are about, and what is simulated beside them."""

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
            self.originals(name)
        if name not in self._read:
            tables = find_tables(name, self.root, self.folder)
            self._read[name] = [table.valid() for table in tables]
        return self._read[name]

    def originals(self, name: str) -> list[Path]:
        """Return the authors' files of a public sweep in the user's folder.

        Raises
        ------
        NotHereError : there are none
        """
        paths = originals(self.registry.sweeps[name], self.folder) if self.folder else []
        if not paths:
            raise NotHereError(
                "no licence, so epochwatt may not pass it on; clone "
                f"{self.registry.source(name).repository} into a folder and name that folder "
                f"with {VARIABLE}"
            )
        return paths
