"""Resolve the study names of config/config.yaml, groups such as `paper` included."""

import difflib
from typing import Any

from epochwatt.board.device.identity import identify
from epochwatt.errors import ConfigError
from epochwatt.study.config import Config, Study
from epochwatt.study.devices import DEVICES, Devices, read_rows
from epochwatt.study.imported import IMPORTED
from epochwatt.study.place import board_at_hand
from epochwatt.study.runs import TWIN
from epochwatt.study.starter import starter
from epochwatt.study.validation import validated

STUDIES = "config/studies.yaml"
HOST_STUDIES = ("host-pipeline", "host-photographs")  # with SIMULATED what `auto` is on no board
STARTER = "starter"
PAPER = "paper"
SIMULATED = "simulated"
GROUPS = ("auto", STARTER, PAPER, SIMULATED, IMPORTED)  # names that stand for several studies


def asked_names(config: dict[str, Any]) -> list[str]:
    """Return the names that config.yaml asks for, in order, with what `auto` is on this machine.

    Raises ConfigError: two lines that name file, key, value and what is allowed.
    """
    studies = validated(Config, config, "config/config.yaml").studies
    auto = [STARTER] if identify("/") else [*HOST_STUDIES, SIMULATED]
    names: list[str] = []
    for name in [studies] if isinstance(studies, str) else studies:
        names += auto if name == "auto" else [name]
    return names


def selected(names: list[str], devices: Devices) -> list[tuple[str, Study]]:
    """Return the studies that the names stand for, in order: their own or those of a group.

    `simulated` is every study that the twin may run, and there it runs: its backend is `twin`.
    """
    studies = read_rows(Study, devices.root / STUDIES)
    chosen: list[tuple[str, Study]] = []
    for name in names:
        if name == STARTER:
            chosen += [(STARTER, study) for study in _starters(devices)]
        elif name == PAPER:
            chosen += [
                (study_name, study) for study_name, study in studies.items() if study.setup != "own"
            ]
        elif name == SIMULATED:
            chosen += [
                (study_name, study.model_copy(update={"backend": TWIN}))
                for study_name, study in studies.items()
                if study.twin or study.backend == TWIN
            ]
        elif name in studies:
            chosen.append((name, studies[name]))
        elif name != IMPORTED:  # whose runs are no rows of a study
            near = difflib.get_close_matches(name, [*GROUPS, *studies], 1)
            raise ConfigError(
                f"no study is called {name!r}",
                do=f"did you mean {near[0]}?" if near else None,
                allowed=f"{', '.join(GROUPS)}; {STUDIES} has: {', '.join(studies)}",
            )
    return chosen


def _starters(devices: Devices) -> list[Study]:
    chosen = []
    for name, device in devices.here().items():
        study, modes = starter(name, device)
        devices.add_modes(name, modes)
        chosen.append(study)
    if not chosen:
        raise ConfigError(
            f"studies names 'starter', and no device is at hand: {board_at_hand()}",
            where="config/config.yaml",
            allowed=f"a Jetson board with a file in {DEVICES}/ (docs/how-to/add-a-board.md)",
        )
    return chosen
