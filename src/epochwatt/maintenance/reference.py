"""Generate the reference tables of the documentation from the code (`make docs`).

A page holds prose and blocks; a block is the text between ``<!-- made: NAME -->`` and
``<!-- end -->``. The blocks of docs/reference/columns.md come from `epochwatt.columns` and
config/flags.yaml, those of config/README.md from the schemas of `epochwatt.study.config`, that of
docs/reference/cli.md from `epochwatt --help`, that of docs/explanation/predictions.md from the
registry of prediction methods, those of docs/how-to/use-public-sweeps.md from
config/sweeps/registry.yaml and the converters. A test compares the committed pages with the
generated ones.
"""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from epochwatt.board.records.shapes import Document
from epochwatt.columns import (
    CEILING_COLUMNS,
    CLOCKS,
    EPOCH_COLUMNS,
    FACTORS,
    FLAGS,
    IDLE_COLUMNS,
    MINIBATCH_COLUMNS,
    PROTOCOL,
    REQUIRED,
    ROUND_COLUMNS,
    RUN_COLUMN,
    RUNS_COLUMNS,
    SCHEMA_VERSION,
    STATISTIC_COLUMNS,
    STUDIES_COLUMN,
    Column,
)
from epochwatt.maintenance.schemas import write_schemas
from epochwatt.open_data.schema import TABLES
from epochwatt.prediction.registry import METHODS, load_method
from epochwatt.study import config
from epochwatt.study.settings import load_settings
from epochwatt.sweeps.public.readers import FORMATS
from epochwatt.sweeps.public.registry import Registry, load_registry

PAGES = (
    "docs/reference/columns.md",
    "docs/reference/cli.md",
    "docs/explanation/predictions.md",
    "docs/how-to/use-public-sweeps.md",
    "config/README.md",
)
BLOCK = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)

# Defaults that are not in the schema: where the value comes from when a key is left out.
DEFAULTS = {
    **dict.fromkeys(("instance", "storage", "power_mode", "dvfs"), "the device's first"),
    "torch_threads": "the device's",
    **dict.fromkeys(CLOCKS, "as in the strongest mode"),
    "dataset_source": "the workload's",
    "device": "the study's",
    "nvpmodel": "none",
    "gpu_share": "all",
    "settle": "no waiting",
    "pairs": "none",
    "random": "all",
    "changing": "none are judged",
    "file": "none",
}
_TYPES = {"str": "text", "string": "text", "int": "integer", "float": "number", "bool": "boolean"}
_LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


def pages(root: Path = Path()) -> dict[str, str]:
    """Return path (below `root`, the checkout) and text of every page, its blocks made anew."""
    made = blocks(root)

    def filled(match: re.Match[str]) -> str:
        return f"{match[1]}\n{made[match[2]]}\n{match[3]}"

    return {page: BLOCK.sub(filled, (root / page).read_text("utf-8")) for page in PAGES}


def blocks(root: Path) -> dict[str, str]:
    """Return name and text of every block; each appears in exactly one page."""
    effects = load_settings(root=root).flag_effects
    identity = (STUDIES_COLUMN, RUN_COLUMN)
    elsewhere = {*identity, *FACTORS, *EPOCH_COLUMNS}
    factors = [(*_cells(f)[:3], _default(f.default), f.description) for f in FACTORS]
    flags = [(f"`{name}`", effects[name], flag.meaning) for name, flag in FLAGS.items()]
    return {
        "versions": f"Schema version {SCHEMA_VERSION}, protocol {PROTOCOL}.\n",
        "identity": _columns(identity),
        "factors": _table(("name", "type", "unit", "default", "meaning"), factors),
        "epoch_columns": _columns(EPOCH_COLUMNS),
        "sets": _columns(f for f in RUNS_COLUMNS if f not in elsewhere),
        "statistics": _listed(STATISTIC_COLUMNS),
        "minibatches": _listed(MINIBATCH_COLUMNS),
        "idle": _columns(IDLE_COLUMNS),
        "ceilings": _columns(CEILING_COLUMNS),
        "rounds": _columns(ROUND_COLUMNS),
        "sweeps": _table(
            ("name", "allowed", "meaning"),
            ((f"`{c.name}`", c.allowed(), c.field.description) for c in TABLES["sweeps"].columns),
        ),
        "flags": _table(("flag", "effect", "meaning"), flags),
        "commands": _commands(),
        "methods": _methods(),
        "public_sweeps": _public_sweeps(load_registry(root)),
        "sweep_formats": _sweep_formats(),
        **{model.__name__: _keys(model) for model in _leaves(config.Closed)},
    }


def _cells(field: Column) -> tuple[str, ...]:
    return (f"`{field.name}`", _TYPES[field.kind], field.unit, field.description)


def _default(value: Any) -> str:
    return "none: always given" if value is REQUIRED else f"`{value}`"


def _columns(columns: Iterable[Column]) -> str:
    return _table(("name", "type", "unit", "meaning"), map(_cells, columns))


def _listed(words: Iterable[str]) -> str:
    return textwrap.fill(", ".join(f"`{word}`" for word in words), 100) + "\n"


def _table(header: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _methods() -> str:
    """Return the table of the package's prediction methods."""
    rows = []
    for name in METHODS:
        method = load_method(name)
        is_stored = method.learns_from and not method.needs_prior
        stored = ", ".join(method.learns_from) if is_stored else "none: scored only"
        rows.append((f"`{name}`", method.title, ", ".join(method.targets), stored))
    return _table(("name", "idea", "fits", "stored for the training sets"), rows)


def _public_sweeps(registry: Registry) -> str:
    """Return the table of the sweeps that others measured."""
    rows = []
    for name, sweep in registry.sweeps.items():
        source = registry.source(name)
        licence = "none: fetch it" if source.licence == "none" else source.licence
        link = f"[{sweep.source}]({source.repository}/tree/{source.commit})"
        rows.append((f"`{name}`", sweep.title, link, licence, "; ".join(sweep.caveats)))
    return _table(("sweep", "what", "source", "licence", "to know"), rows)


def _sweep_formats() -> str:
    """Return the table of the formats that `epochwatt convert-sweep` reads."""
    rows = [(f"`{name}`", form.title, f"`{form.files}`") for name, form in FORMATS.items()]
    return _table(("FORMAT", "what", "FILE"), rows)


def _commands() -> str:
    """Return the help of every command that `epochwatt --help` lists."""
    names = re.findall(r"^ +([a-z][a-z0-9-]*)  +\S", _help(), re.MULTILINE)
    return "\n".join(f"## {name}\n\n```text\n{_help(name)}```\n" for name in names)


def _help(*command: str) -> str:
    """Return a help text as a reader without a terminal sees it."""
    return subprocess.run(
        [sys.executable, "-m", "epochwatt", *command, "--help"],
        env={**os.environ, "COLUMNS": "90", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _leaves(model: type[config.Closed]) -> Iterator[type[config.Closed]]:
    """Yield the schemas below one that no other builds on; these have the keys of their bases."""
    for below in model.__subclasses__():
        yield from _leaves(below) if below.__subclasses__() else (below,)


def _keys(model: type[config.Closed]) -> str:
    """Return the table of a schema's keys; a factor is described by `fields`."""
    schema = model.model_json_schema()
    factors = {f.name: f.description for f in FACTORS} if model is config.FactorValues else {}
    rows = [
        (
            f"`{key}`",
            _type(p),
            _allowed(p),
            _key_default(key, model),
            factors.get(key) or p["description"],
        )
        for key, p in schema["properties"].items()
    ]
    return _table(("key", "type", "allowed", "default", "meaning"), rows)


def _type(schema: Document) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        kinds = dict.fromkeys(_type(s) for s in schema["anyOf"] if s.get("type") != "null")
        return " or ".join(k for k in kinds if k != "integer" or "number" not in kinds)
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    if schema["type"] == "object":
        inner = schema["additionalProperties"]
        return f"name -> {_type(inner)}" if isinstance(inner, dict) else "name -> anything"
    return _TYPES.get(schema["type"], str(schema["type"]))


def _allowed(schema: Document) -> str:
    for inner in (schema.get("items", {}), *schema.get("anyOf", ())):
        schema = {**schema, **{k: v for k, v in inner.items() if k in (*_LIMITS, "enum", "const")}}
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    notes = ["at least one"] if schema.keys() & {"minItems", "minProperties"} else []
    limits = [f"{sign} {schema[key]:g}" for key, sign in _LIMITS.items() if key in schema]
    return ", ".join([*map("`{}`".format, words), *notes, *limits])


def _key_default(key: str, model: type[config.Closed]) -> str:
    field = model.model_fields[key]
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    return DEFAULTS[key] if default is None else f"`{default}`" if default != "" else "none"


if __name__ == "__main__":
    for page, text in pages().items():
        Path(page).write_text(text, encoding="utf-8")
    write_schemas()
