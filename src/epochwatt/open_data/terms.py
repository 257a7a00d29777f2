"""On whose terms rows may be passed on: the licence of public sweeps and packages stays theirs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochwatt.board.records import files
from epochwatt.errors import ConfigError
from epochwatt.open_data import layout
from epochwatt.open_data.read import is_package, unpacked
from epochwatt.sweeps.public.registry import licence_path, load_registry

NO_LICENCE = "none"  # of a public sweep


@dataclass(frozen=True)
class Terms:
    """Who made the rows of a package, and what others may do with them; texts may be empty."""

    licence: str = ""  # SPDX expression
    title: str = ""
    creator: str = ""
    source: str = ""
    citation: str = ""
    text: str = ""  # of the licence, with its copyright line


def terms_of(names: Iterable[str], given: Terms) -> Terms:
    """Return the terms of a package of these names.

    Raises ConfigError: no licence, one that SPDX does not list, or another than the names have.

    Parameters
    ----------
    names : what is passed on: public sweeps and packages have terms already
    given : by who passes it on; what is empty comes from the names
    """
    theirs = {name: terms for name in names if (terms := _known(name))}
    for name, terms in theirs.items():
        if terms.licence == NO_LICENCE:
            raise ConfigError(
                f"{name} may not be passed on: its authors gave it no licence",
                where=terms.source,
                do="ask them; until then others can read it from the authors' own files",
            )
    licences = dict.fromkeys(terms.licence for terms in theirs.values())
    licence = given.licence or next(iter(licences), "")
    for name, terms in theirs.items():
        if terms.licence != licence:
            raise ConfigError(
                f"the licence of {name} is {terms.licence}, and stays so",
                found=licence,
                allowed=terms.licence,
                do="make a package per licence",
            )
    if wrong := layout.licence_problem(licence) if licence else "is missing":
        raise ConfigError(
            f"the licence {wrong}",
            found=licence or None,
            allowed="a name of https://spdx.org/licenses, such as CC-BY-4.0 or Apache-2.0",
            do="add --licence: without one nobody may use the data",
        )
    return Terms(
        licence=licence,
        title=given.title or _joined([terms.title for terms in theirs.values()]),
        creator=given.creator or _joined([terms.creator for terms in theirs.values()]),
        source=given.source or _joined([terms.source for terms in theirs.values()]),
        citation=given.citation or _joined([terms.citation for terms in theirs.values()]),
        text=_joined([terms.text for terms in theirs.values()], "\n\n"),
    )


def _joined(texts: Sequence[str], between: str = "; ") -> str:
    return between.join(dict.fromkeys(text for text in texts if text))


def _known(name: str) -> Terms | None:
    """Return the terms of a public sweep or of a package; None: it is neither."""
    registry = load_registry()
    if sweep := registry.sweeps.get(name):
        source, path = registry.source(name), licence_path(sweep.source)
        return Terms(
            source.licence,
            sweep.title,
            source.authors,
            f"{source.repository}/tree/{source.commit}",
            source.citation,
            path.read_text("utf-8") if path.is_file() else "",
        )
    if not is_package(name):
        return None
    with unpacked(Path(name)) as folder:
        return _of_package(folder)


def _of_package(folder: Path) -> Terms | None:
    if not (folder / layout.DESCRIPTOR).is_file():
        return None
    stated = files.read_json(str(folder / layout.DESCRIPTOR))
    licence = next((one["name"] for one in stated.get("licenses", [])), "")
    text = folder / layout.LICENCE
    return Terms(
        licence,
        stated.get("title", ""),
        _joined([one.get("title", "") for one in stated.get("contributors", [])]),
        _joined([one.get("title", "") for one in stated.get("sources", [])]),
        stated.get("citation", ""),
        text.read_text("utf-8") if text.is_file() else "",
    )
