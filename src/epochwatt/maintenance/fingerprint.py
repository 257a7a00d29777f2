"""Hash the code that a rule uses, so that editing it reruns the rule.

Snakemake does not see changes inside an installed package. A rule that runs a script carries
`params: code=code_of("plot_figure.py")` (workflow/rules/common.smk): the hash covers the script and
every module of this package, or of the user's own in src/, that it imports, directly or not.
Comments, docstrings, layout and descriptions of columns do not count; templates, style sheets and
scripts of pages beside a module `__init__` do, and the CSV or JSON file of a module's own name.
Measuring rules carry no fingerprint (docs/decisions/0002).
"""

import ast
import csv
import functools
import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.board.records import files

PACKAGE = __name__.split(".")[0]
ROOT = Path(__file__).parents[2]  # the folder that holds the package
OWN = Path("src")  # modules of the user, in the working folder
KEPT = Path(".cache/code.json")  # what was parsed before, in the working folder


def fingerprint(*modules: str, script: str = "") -> str:
    """Hash code and all modules of this package that it imports; return 16 hex digits.

    `modules`: names of modules, of this package or of the user's own; `script`: path of a file that
    imports some; where it lies does not count
    """
    digest, n_kept = hashlib.sha256(), len(_kept())
    if script:
        digest.update(f"{_parsed(Path(script)).digest}\0".encode())
    for name in sorted(modules_behind(*modules, script=script)):
        digest.update(f"{name}\0{_parsed(_path_of(name)).digest}\0".encode())
    _keep(n_kept)
    return digest.hexdigest()[:16]


def modules_behind(*modules: str, script: str = "") -> set[str]:
    """Return the modules whose code a fingerprint covers. Parameters as of `fingerprint`."""
    covered: set[str] = set()
    waiting = [*modules, *(imports_of(Path(script)) if script else ())]
    while waiting:
        name = waiting.pop()
        if name not in covered:
            covered.add(name)
            waiting.extend(imports_of(_path_of(name)))
    return covered


@functools.cache
def _path_of(module: str) -> Path:
    path = _place_of(module)
    if path is None and module.split(".")[0] != PACKAGE:  # of the user's own
        spec = importlib.util.find_spec(module)
        path = Path(spec.origin) if spec and spec.origin else None
    if path is None:
        raise ValueError(f"no module {module!r}")
    return path


@functools.cache
def _place_of(module: str) -> Path | None:
    """Return the file of a module of ours, found without importing anything."""
    return _place_in(ROOT, module) or _place_in(OWN, module)


def _place_in(folder: Path, module: str) -> Path | None:
    path = folder.joinpath(*module.split("."))
    places = (path / "__init__.py", path.with_suffix(".py"))
    return next((place for place in places if place.exists()), None)


class _Parsed(NamedTuple):
    """The content of a file that its fingerprint covers."""

    imports: frozenset[str]  # modules of this package, and of the user's own in src/
    digest: str  # of its code


def imports_of(path: Path) -> frozenset[str]:
    """Return the modules of this package, and of the user's own in src/, that a file imports."""
    return _parsed(path).imports


@functools.cache
def _is_covered(module: str) -> bool:
    return module.split(".")[0] == PACKAGE or _place_in(OWN, module) is not None


@functools.cache
def _parsed(path: Path) -> _Parsed:
    """Return imports and hash of a module's code, without docstrings and comments."""
    others = path.parent.iterdir() if path.name == "__init__.py" else ()
    beside = sorted(file for file in others if file.suffix in (".html", ".css", ".js", ".txt"))
    more = "".join(file.read_text(encoding="utf-8") for file in beside)
    if path == ROOT / PACKAGE / "columns.py":
        more += _columns_without_descriptions(path.parent)
    else:
        tables = (path.with_suffix(ending) for ending in (".csv", ".json"))
        more += "".join(table.read_text("utf-8") for table in tables if table.exists())
    source = path.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{sys.version}\0{source}\0{more}".encode()).hexdigest()
    if key not in _kept():
        _kept()[key] = _parse(source, more)
    names, digest = _kept()[key]
    modules: set[str] = set()
    for module, name in names:  # a module, or a name of the module before it
        is_module = name and _is_covered(f"{module}.{name}") and _place_of(f"{module}.{name}")
        modules.add(f"{module}.{name}" if is_module else module)
    return _Parsed(frozenset(filter(_is_covered, modules)), digest)


def _parse(source: str, more: str) -> tuple[list[tuple[str, str]], str]:
    """Return (module, name or "") of all imports, and the hash of the code and of `more`."""
    tree = ast.parse(source)
    names: list[tuple[str, str]] = []
    for statement in list(_statements(tree)):
        if isinstance(statement, ast.Import):
            names += [(alias.name, "") for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            names += [(statement.module, alias.name) for alias in statement.names]
        elif isinstance(
            statement, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            first = statement.body[0] if statement.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                statement.body = statement.body[1:]
    return names, hashlib.sha256((ast.dump(tree) + more).encode()).hexdigest()


@functools.cache
def _kept() -> dict[str, Any]:
    """Return what `_parse` found before, by a hash of what it was given.

    The start of each workflow waits for some 300 files, a second in all.
    """
    with suppress(OSError, ValueError):
        kept = json.loads(KEPT.read_bytes())
        return kept if isinstance(kept, dict) else {}
    return {}


def _keep(n_before: int) -> None:
    """Write what `_parse` found, if that is more than it was; no matter where it cannot be."""
    if len(_kept()) > n_before:
        with suppress(OSError):
            KEPT.parent.mkdir(exist_ok=True)
            files.write_bytes(str(KEPT), json.dumps(_kept()).encode(), durable=False)


def _statements(node: Any) -> Iterator[Any]:
    """Yield a node and all statements in it: `ast.walk` would look at each expression, too."""
    yield node
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, block, ()):
            yield from _statements(statement)


def _columns_without_descriptions(folder: Path) -> str:
    """Return columns and flags without descriptions, which only docs/reference/columns.md shows.

    What flags do is a parameter of the rules that read it.
    """
    columns, flags = (
        list(csv.reader((folder / name).read_text("utf-8").splitlines()))
        for name in ("columns.csv", "flags.csv")
    )
    return f"{[row[:-1] for row in columns]}{[row[0] for row in flags]}"
