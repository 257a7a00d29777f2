"""Tables in the docs made from the code, so that they cannot say anything else (`make docs`).

A page holds prose and blocks; a block is what stands between ``<!-- made: NAME -->`` and
``<!-- end -->``. The blocks of docs/columns.md come from `epochwatt.fields` and config/flags.yaml,
those of config/README.md from the schemas of `epochwatt.study.config`, one for each schema. A test
compares the pages with what stands in the checkout.
"""

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from epochwatt import fields
from epochwatt.study import config
from epochwatt.study.settings import load_settings

PAGES = ("docs/columns.md", "config/README.md")
BLOCK = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)

# What a sweep gets for a factor that it leaves out and whose schema has no value of its own.
LEFT_OUT = {
    **dict.fromkeys(("instance", "storage", "power_mode", "dvfs"), "the device's first"),
    "torch_threads": "the device's",
    **dict.fromkeys(("cores", "cpu_mhz", "gpu_mhz", "emc_mhz"), "as in the strongest mode"),
    "dataset_source": "the workload's",
    "device": "the study's",
    "nvpmodel": "none",
    "gpu_share": "all",
    "settle": "no waiting",
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
    """Return name and text of every block; each stands in exactly one page."""
    effects = load_settings(root=root).flag_effects
    own = (fields.STUDIES_COLUMN, fields.RUN_COLUMN)
    elsewhere = {*own, *fields.FACTORS, *fields.EPOCH_COLUMNS}
    factors = [(*_cells(f)[:3], _default(f.default), f.description) for f in fields.FACTORS]
    flags = [(f"`{name}`", effects[name], about) for name, about in fields.FLAGS.items()]
    return {
        "versions": f"Schema version {fields.SCHEMA_VERSION}, protocol {fields.PROTOCOL}.\n",
        "identity": _columns(own),
        "factors": _table(("name", "type", "unit", "default", "meaning"), factors),
        "epoch_columns": _columns(fields.EPOCH_COLUMNS),
        "sets": _columns(f for f in fields.RUNS_COLUMNS if f not in elsewhere),
        "statistics": _listed(fields.STATISTIC_COLUMNS),
        "minibatches": _listed(fields.MINIBATCH_COLUMNS),
        "idle": _columns(fields.IDLE_COLUMNS),
        "flags": _table(("flag", "effect", "meaning"), flags),
        **{model.__name__: _keys(model) for model in config.Closed.__subclasses__()},
    }


def _cells(field: fields.Field) -> tuple[str, ...]:
    return (f"`{field.name}`", _TYPES[field.kind], field.unit, field.description)


def _default(value: Any) -> str:
    return "none: always given" if value is fields.REQUIRED else f"`{value}`"


def _columns(of: Iterable[fields.Field]) -> str:
    return _table(("name", "type", "unit", "meaning"), map(_cells, of))


def _listed(words: Iterable[str]) -> str:
    return textwrap.fill(", ".join(f"`{word}`" for word in words), 100) + "\n"


def _table(header: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _keys(model: type[config.Closed]) -> str:
    """Return the table of a schema's keys; a factor is described by `fields`."""
    schema = model.model_json_schema()
    factors = (
        {f.name: f.description for f in fields.FACTORS} if model is config.FactorValues else {}
    )
    rows = [
        (
            f"`{key}`",
            _type(p),
            _allowed(p),
            _left_out(key, model),
            factors.get(key) or p["description"],
        )
        for key, p in schema["properties"].items()
    ]
    return _table(("key", "type", "allowed", "left out", "meaning"), rows)


def _type(schema: dict[str, Any]) -> str:
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
    return _TYPES.get(schema["type"], schema["type"])


def _allowed(schema: dict[str, Any]) -> str:
    for inner in (schema.get("items", {}), *schema.get("anyOf", ())):
        schema = {**schema, **{k: v for k, v in inner.items() if k in (*_LIMITS, "enum", "const")}}
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    some = ["at least one"] if schema.keys() & {"minItems", "minProperties"} else []
    limits = [f"{sign} {schema[key]:g}" for key, sign in _LIMITS.items() if key in schema]
    return ", ".join([*map("`{}`".format, words), *some, *limits])


def _left_out(key: str, model: type[config.Closed]) -> str:
    field = model.model_fields[key]
    if field.is_required():
        return "an error"
    default = field.get_default(call_default_factory=True)
    return LEFT_OUT[key] if default is None else f"`{default}`" if default != "" else "none"


if __name__ == "__main__":
    for page, text in pages().items():
        Path(page).write_text(text, encoding="utf-8")
