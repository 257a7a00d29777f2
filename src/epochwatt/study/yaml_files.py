"""Read YAML files safely: no objects, no bombs, no duplicate keys."""

from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from epochwatt.errors import ConfigError

DEEPEST = 50  # our own files have six levels
FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's where it is installed


def refuse_deep(text: str, path: Path) -> None:
    """Raise ConfigError for YAML that is nested more than `DEEPEST` levels deep.

    libyaml's composer recurses at each level and crashes the process where the stack ends; its
    events, which are counted here, need no stack. Raises yaml.YAMLError where it is not YAML.
    """
    depth = 0
    for event in yaml.parse(text, Loader=FAST):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST and event.start_mark is not None:
            raise ConfigError(
                f"nested more than {DEEPEST} levels deep",
                where=f"{path}, line {event.start_mark.line + 1}",
                do="look for stray brackets",
            )


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file, any type; ConfigError: it is missing, or not YAML."""
    try:
        return deepcopy(_parsed(path.read_text(encoding="utf-8"), path))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            "not text", where=str(path), found=str(error), allowed="YAML in UTF-8"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise ConfigError("not valid YAML", where=f"{path}{line}", found=problem) from error
    except ValueError as error:  # such as a date 2026-02-30
        raise ConfigError("not valid YAML", where=str(path), found=str(error)) from error


@lru_cache(maxsize=64)  # a start of the program reads some files a dozen times
def _parsed(text: str, path: Path) -> Any:
    refuse_deep(text, path)
    return yaml.load(text, Loader=_Loader)


class _Loader(FAST):  # type: ignore[misc,valid-type]
    """YAML in which on, off, yes and no are words, and a key may stand only once."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; ConstructorError: a key stands twice, or is no scalar."""
        seen = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key has to be a word or a number", key_node.start_mark
                )
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key_node.value!r} stands twice", key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    character: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:bool"]
    for character, resolvers in _Loader.yaml_implicit_resolvers.items()
}
