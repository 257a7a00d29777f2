"""Write JSON schemas of the files in config/, for editors (`make docs`).

The first line of each file names its schema, so that an editor with a YAML language server
completes keys, explains them and underlines mistakes. `epochwatt plan` checks the same and more.
"""

import json
from pathlib import Path

from pydantic import TypeAdapter

from epochwatt import columns
from epochwatt.board.records.shapes import Document
from epochwatt.claims.tolerances import Terms
from epochwatt.prediction.transfer.config import PowertrainStudy
from epochwatt.rounds.config import FederatedStudy
from epochwatt.schedule.config import ScheduleStudy
from epochwatt.study import config
from epochwatt.study.idle import IdleStudy
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.grids import ALL, NAMED
from epochwatt.sweeps.public.registry import Registry
from epochwatt.sweeps.table import NOT_OURS
from epochwatt.twin.boards import Board, SampleFacts
from epochwatt.twin.parameters import Parameter

FOLDER = "config/schema"
LINE = "# yaml-language-server: $schema="
KINDS: Document = {  # name of the schema -> what a file holds
    "config": config.Config,
    "studies": dict[str, config.Study],
    "sweeps": dict[str, SweepEntry],
    "device": config.Device,
    "workloads": dict[str, config.WorkloadRow],
    "predictors": dict[str, config.PredictorRow],
    "powertrain": PowertrainStudy,
    "schedule": ScheduleStudy,
    "federated": FederatedStudy,
    "exclusions": list[config.Exclusion],
    "flags": dict[str, config.Flag],
    "plotting": config.Plotting,
    "idle_simulated": dict[str, IdleStudy],
    "public_sweeps": Registry,
    "claims": Terms,
    "boards": dict[str, Board],
    "parameters": dict[str, dict[str, Parameter]],
    "samples": dict[str, SampleFacts],
}


def schema_files() -> dict[str, str]:
    """Return path (below the checkout) and text of every schema."""
    schemas = {name: TypeAdapter(kind).json_schema() for name, kind in KINDS.items()}
    schemas["studies"]["$defs"]["Study"]["properties"]["sweep"]["items"] = _sweep_block_schema()
    entry = schemas["sweeps"]["$defs"]["SweepEntry"]["properties"]
    entry["workload"] = _workload_schema()
    grid = {"$ref": entry["grid"].pop("$ref")}
    entry["grid"]["anyOf"] = [{"type": "string", "enum": [ALL, *NAMED]}, grid]
    schemas["flags"]["propertyNames"] = {"enum": list(columns.FLAGS)}
    for name in ("Board", "Parameter", "SampleFacts"):  # keys left out are their group's
        (schema,) = (s["$defs"][name] for s in schemas.values() if name in s.get("$defs", {}))
        schema.pop("required")
        schema["additionalProperties"] = False
    return {f"{FOLDER}/{name}.json": _text(schema) for name, schema in schemas.items()}


def _sweep_block_schema() -> Document:
    """Return the schema of a block of a sweep: for each factor a value or a list of values."""
    block = config.FactorValues.model_json_schema()
    meanings = {field.name: field.description for field in columns.FACTORS}
    for name, value in block["properties"].items():
        choices = value.pop("anyOf", [{k: value.pop(k) for k in list(value) if k not in _SHOWN}])
        choices = [choice for choice in choices if choice != {"type": "null"}]
        value["anyOf"] = [*choices, {"type": "array", "minItems": 1, "items": {"anyOf": choices}}]
        value["description"] = meanings[name]
    return block


def _workload_schema() -> Document:
    """Return the schema of a sweep's workload: for each of its factors a value."""
    factors = config.FactorValues.model_json_schema()
    meanings = {field.name: field.description for field in columns.FACTORS}
    for name in NOT_OURS:
        del factors["properties"][name]
    for name, value in factors["properties"].items():
        value["description"] = meanings[name]
    return factors


_SHOWN = ("title", "description", "default")


def _text(schema: Document) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def write_schemas(root: Path = Path()) -> None:
    """Write all schemas below `root`, the checkout."""
    for path, text in schema_files().items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, "utf-8")
