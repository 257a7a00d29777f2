"""Resolve functions and classes named by the configuration (board side: Python 3.6 grammar).

A reference is `module.name`; the module is looked for on the Python path, where `src/` of the
checkout is. So networks and data sets come in that are not part of this package
(docs/tutorials/own-network.md).
"""

import importlib
from typing import Any

from epochwatt.errors import ConfigError


def is_reference(name: str) -> bool:
    """Tell a reference from the name of something that is part of this package."""
    return "." in name


def resolve(reference: str, where: str) -> Any:
    """Import the function or class that a reference `[package.]module.name` names.

    `where`: where in the configuration it stands. Raises ConfigError: the module cannot be
    imported or lacks the name.
    """
    module_name, _, name = reference.rpartition(".")
    problem = "has no module before its last dot"
    if module_name:
        try:
            module = importlib.import_module(module_name)
        # TypeError: of dots at its beginning; SyntaxError: it names file and line
        except (ImportError, SyntaxError, TypeError) as error:
            problem = f"cannot be imported ({error})"
        else:
            if hasattr(module, name):
                return getattr(module, name)
            problem = f"is not there: {module.__file__} has no {name}"
    raise ConfigError(
        f"{reference!r} {problem}",
        where=where,
        allowed="module.name, of a module on the Python path, such as src/ of the checkout "
        "(docs/tutorials/own-network.md)",
    )
