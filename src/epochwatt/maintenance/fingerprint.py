"""A hash of the code a rule uses, so that editing it reruns the rule.

Snakemake does not see changes inside an installed package. Analysis rules carry
`params: code=fingerprint("epochwatt.figures.fig02")`: the hash covers that module and every module
of this package that it imports, directly or not. Comments, docstrings and layout do not count.
Measuring rules carry no fingerprint (docs/decisions/0002).
"""

import ast
import functools
import hashlib
from pathlib import Path

PACKAGE = __name__.split(".")[0]
ROOT = Path(__file__).parents[2]  # the folder that holds the package


def fingerprint(*modules: str) -> str:
    """Return 16 hex digits that stand for the code of the modules and all they import of ours."""
    digest = hashlib.sha256()
    for name in sorted(_closure(modules)):
        digest.update(f"{name}\0{_code_of(_path_of(name))}\0".encode())
    return digest.hexdigest()[:16]


def _closure(modules: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(imports_of(_path_of(name)))
    return found


@functools.cache
def _path_of(module: str) -> Path:
    path = _place_of(module)
    if path is None:
        raise ValueError(f"no module {module!r}")
    return path


def _place_of(module: str) -> Path | None:
    """Return the file of a module of ours, found without importing anything."""
    path = ROOT.joinpath(*module.split("."))
    places = (path / "__init__.py", path.with_suffix(".py"))
    return next((place for place in places if place.exists()), None)


@functools.cache
def imports_of(path: Path) -> frozenset[str]:
    """Return the modules of this package that a file imports, wherever in the file it does so."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:  # `from package import module` or `from module import name`
                inner = f"{node.module}.{alias.name}"
                found.add(inner if _is_module(inner) else node.module)
    return frozenset(m for m in found if m.split(".")[0] == PACKAGE)


def _is_module(name: str) -> bool:
    return name.split(".")[0] == PACKAGE and _place_of(name) is not None


@functools.cache
def _code_of(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return ast.dump(tree)
