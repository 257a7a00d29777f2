"""The registry of public sweeps, config/sweeps/registry.yaml, and where their numbers are.

Sources with a licence that allows it have their tables beside the registry. The others are read
from a folder that the user names: their own copies of the authors' repositories.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from epochwatt.errors import ConfigError
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.public.convert import Converted, convert
from epochwatt.sweeps.public.readers import FORMATS, Wanted

FOLDER = "config/sweeps"
REGISTRY = f"{FOLDER}/registry.yaml"
VARIABLE = "EPOCHWATT_PUBLIC_DATA"
OPTION = "--public-data"


class Entry(BaseModel):
    """A mapping of the registry that accepts the keys it describes and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Entry):
    """Who measured, where it is published, and on which terms."""

    authors: str = Field(description="who measured it")
    repository: str = Field(pattern="^https://", description="address of the repository")
    commit: str = Field(pattern="^[0-9a-f]{40}$", description="commit that was read")
    licence: Literal["MIT", "Apache-2.0", "BSD-3-Clause", "none"] = Field(
        description="SPDX name; `none`: its tables are not passed on with epochwatt"
    )
    citation: str = Field("", description="paper that describes the measurements")


class Sweep(Entry):
    """One sweep of a source."""

    source: str = Field(description="its source")
    format: str = Field(description="format of its files, of `epochwatt convert-sweep`")
    files: list[str] = Field(min_length=1, description="patterns of the files in the repository")
    also: list[str] = Field([], description="other names under which the same lines are known")
    only: str = Field("*", description="pattern of the tables, where a file holds several")
    device: str = Field("", description="device, where the files do not say it")
    title: str = Field(description="what was measured")
    caveats: list[str] = Field([], description="what to know before the numbers are used")

    @model_validator(mode="after")
    def _check_format(self) -> "Sweep":
        if self.format not in FORMATS:
            raise ValueError(f"format: one of {', '.join(FORMATS)}")
        return self


class Registry(Entry):
    """config/sweeps/registry.yaml: sweeps that others published."""

    sources: dict[str, Source] = Field(description="source -> who, where, on which terms")
    sweeps: dict[str, Sweep] = Field(description="name of the sweep -> where and what it is")

    @model_validator(mode="after")
    def _check_sources(self) -> "Registry":
        """Refuse sweeps whose source is not described."""
        for name, sweep in self.sweeps.items():
            if sweep.source not in self.sources:
                raise ValueError(f"sweeps.{name}.source: one of {', '.join(self.sources)}")
        return self

    def source(self, name: str) -> Source:
        """Return the source of a sweep."""
        return self.sources[self.sweeps[name].source]

    def is_shipped(self, name: str) -> bool:
        """Return whether a sweep's table lies beside the registry."""
        return self.source(name).licence != "none"


def load_registry(root: Path = Path()) -> Registry:
    """Read the registry of a checkout; an empty one where it has none. Raises ConfigError."""
    path = root / REGISTRY
    if not path.exists():
        return Registry(sources={}, sweeps={})
    return validated(Registry, read_yaml(path), REGISTRY)


def shipped_path(name: str, root: Path = Path()) -> Path:
    """Return where the table of a sweep lies that is passed on with epochwatt."""
    return root / FOLDER / f"{name}.csv.gz"


def licence_path(source: str, root: Path = Path()) -> Path:
    """Return where the text of a source's licence lies."""
    return root / FOLDER / "licences" / f"{source}.txt"


def public_folder(option: Path | None, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the user's folder of others' repositories: the option, else `VARIABLE`, else None.

    Raises ConfigError: there is no such folder.
    """
    named = option or (Path(environment[VARIABLE]) if environment.get(VARIABLE) else None)
    if named is not None and not named.is_dir():
        raise ConfigError("no such folder", where=OPTION if option else VARIABLE, found=str(named))
    return named


def originals(sweep: Sweep, folder: Path) -> list[Path]:
    """Find the authors' files of a sweep in a folder, or one level below it; empty: none."""
    for patterns in (sweep.files, sweep.also):
        globs = [*patterns, *(f"*/{pattern}" for pattern in patterns)]  # clones, archives
        found = {path for pattern in globs for path in folder.glob(pattern) if path.is_file()}
        if found:
            return sorted(found)
    return []


def converted(name: str, registry: Registry, folder: Path | None) -> Converted:
    """Convert the authors' files of a sweep, in the folder of `public_folder`, to mode tables.

    Raises ConfigError: the files are not there, and where to get them; they cannot be read.
    """
    sweep, source = registry.sweeps[name], registry.source(name)
    paths = originals(sweep, folder) if folder else []
    if not paths:
        clone = f"git clone {source.repository}"
        terms = "none: epochwatt may not pass it on" if source.licence == "none" else source.licence
        raise ConfigError(
            f"the files of the public sweep {name} are not here (licence: {terms})",
            where=str(folder) if folder else None,
            found="no such file" if folder else f"no folder named by {OPTION} or {VARIABLE}",
            allowed=f"{', '.join(sweep.files)} of {source.repository} (commit {source.commit})",
            do=f"{clone} into a folder, and name that folder with {OPTION} or {VARIABLE}",
        )
    return convert(sweep.format, paths, Wanted(name, sweep.device, sweep.only))
