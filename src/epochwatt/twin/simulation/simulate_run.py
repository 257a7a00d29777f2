"""Jobs of the simulation: read the configuration, simulate a run or idle powers, write files."""

import json
from pathlib import Path
from typing import Any

from epochwatt import fields
from epochwatt.errors import ConfigError
from epochwatt.twin.inputs.twin import load_twin
from epochwatt.twin.simulation.idle import write_idles
from epochwatt.twin.simulation.records import write_run
from epochwatt.twin.simulation.run import simulate


def simulate_run(
    run: str,
    canonical: str,
    n_epochs: int,
    config: Path,
    workload: str,
    effects: str,
    output: str,
    tables: str,
) -> None:
    """Simulate a run of the run table and write its files.

    Parameters
    ----------
    run : its id
    canonical : JSON of its factors, as in the run table
    n_epochs : how many epochs
    config : folder of the twin's configuration
    workload : counts of its network
    effects : JSON, flag -> effect
    output : folder of its records
    tables : folder of its tables

    Raises
    ------
    ConfigError, EpochwattError : the twin lacks a part of the run
    RecordError, RecordWriteError : as `write_run`
    """
    try:
        factors = fields.with_defaults(json.loads(canonical))
    except ValueError as error:
        allowed = "a run's factors, as JSON"
        raise ConfigError(str(error), where="--factors", allowed=allowed) from None
    twin = load_twin(config, {factors["model"]: workload})
    epochs = simulate(factors, n_epochs, twin)
    write_run(run, output, factors, epochs, json.loads(effects), tables)


def simulate_idle(idles: str, config: Path, output: str) -> None:
    """Write the idle powers of simulated boards.

    Parameters
    ----------
    idles : JSON, as of `study.idle_studies.simulated_idles`
    config : folder of the twin's configuration
    output : folder of all of them
    """
    wanted: list[dict[str, Any]] = json.loads(idles)
    write_idles(wanted, load_twin(config, {}), output)
