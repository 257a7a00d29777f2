"""Resolve the study names of config/config.yaml, groups such as `paper` included.

The starter study is made from the board's own tables and the media that are there. It asks the
papers' first questions of a board that nobody has configured: what loader workers and the
mini-batch size do on each medium, and what each of the four settings of a power mode costs. The
data set is scaled so that all of it takes about two hours.
"""

import difflib

from epochwatt.board.device.board_files import Tables, cpus, tables
from epochwatt.board.device.identity import identify
from epochwatt.board.records.shapes import Document
from epochwatt.errors import ConfigError
from epochwatt.study.config import Config, Device, PowerMode, Study
from epochwatt.study.devices import DEVICES, Devices, read_rows
from epochwatt.study.imported import IMPORTED, OWN
from epochwatt.study.place import board_at_hand, medium_is_here, no_medium
from epochwatt.study.runs import TWIN
from epochwatt.study.validation import validated

STUDIES = "config/studies.yaml"
HOST_STUDIES = ("host-pipeline", "host-photographs")  # with SIMULATED what `auto` is on no board
STARTER = "starter"
PAPER = "paper"
SIMULATED = "simulated"
GROUPS = ("auto", STARTER, PAPER, SIMULATED, IMPORTED, OWN)  # names that stand for several studies


def asked_names(config: Document) -> list[str]:
    """Return the names of studies and groups in config.yaml, `auto` replaced, in order.

    Raises ConfigError: config.yaml has a wrong key or value.
    """
    studies = validated(Config, config, "config/config.yaml").studies
    auto = [*([STARTER] if identify("/") else [*HOST_STUDIES, SIMULATED]), OWN]
    names: list[str] = []
    for name in [studies] if isinstance(studies, str) else studies:
        names += auto if name == "auto" else [name]
    return names


def selected(names: list[str], devices: Devices) -> list[tuple[str, Study]]:
    """Return name and study of all that the names stand for, groups such as `paper` expanded.

    `simulated` is every study that the twin may run, with the backend `twin`. Raises ConfigError:
    an unknown name, or `starter` without a board.
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
        elif name not in (IMPORTED, OWN):  # whose runs are no rows of a study
            near = difflib.get_close_matches(name, [*GROUPS, *studies], 1)
            raise ConfigError(
                f"no study is called {name!r}",
                do=f"did you mean {near[0]}?" if near else None,
                allowed=f"{', '.join(GROUPS)}; {STUDIES} has: {', '.join(studies)}",
            )
    return chosen


def _starters(devices: Devices) -> list[Study]:
    """Return the starter study of each board at hand; adds its power modes to the devices.

    Raises ConfigError: no board is at hand.
    """
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


MODEL = "mobilenet"
EPOCHS = 3
WORKERS = [0, 1, 4]
BATCH_SIZES = [16, 32]
TARGET_S = 2 * 3600.0
SAMPLES = 23080  # of GLD-23k, at scale 1
SLOWER = 1.8  # ASSUME: an epoch of the study's mean run against one at the guessed speed


def starter(name: str, device: Device) -> tuple[Study, dict[str, PowerMode]]:
    """Return the starter study of a device at hand, and its power modes by name.

    Raises ConfigError: no storage medium is there, or the board does not list its clocks.
    """
    media = [key for key, storage in device.storage.items() if medium_is_here(storage)]
    if not media:
        raise ConfigError(
            "no medium of storage is there",
            where=f"config/devices/{name}.yaml",
            found="; ".join(f"{key}: {no_medium(s)}" for key, s in device.storage.items()),
            do="correct `storage` there: docs/how-to/add-a-storage-medium.md",
        )
    clocks = tables(device.sysroot)
    if not clocks.cpu_khz or not clocks.gpu_hz:
        raise ConfigError(
            f"the board below {device.sysroot} does not list the clocks of its CPU or its GPU, so "
            "no power mode can be chosen",
            where=f"config/devices/{name}.yaml",
            do="run `epochwatt doctor`",
        )
    modes = power_modes(clocks, len(cpus(device.sysroot)))
    pipeline = {"num_workers": WORKERS, "batch_size": BATCH_SIZES, "storage": media}
    # not len(media): a disk that is away for a day must not change the data set, and so every id
    n_runs = len(WORKERS) * len(BATCH_SIZES) * len(device.storage) + len(modes) - 1
    common = {
        "model": MODEL,
        "dataset_source": "synthetic",
        "dataset_scale": _scale(device, n_runs * EPOCHS),
        "power_mode": "max",
    }
    sweep = [
        {**common, **pipeline},
        {**common, "num_workers": 4, "storage": media[0], "power_mode": list(modes)},
    ]
    title = f"First look at a {device.title}"
    study = Study(
        setup="own", title=title, backend="jetson", device=name, epochs=EPOCHS, sweep=sweep
    )
    return study, modes


def power_modes(clocks: Tables, n_cores: int) -> dict[str, PowerMode]:
    """Return the modes of the starter study: `max`, `half{setting}` for each setting, and `half`.

    Settings are cores and clocks in MHz. A clock without known steps (on most boards the memory's)
    is not set.
    """
    full: dict[str, float] = {"cores": n_cores}
    half: dict[str, float] = {"cores": max(1, n_cores // 2)}
    for key, steps, unit in (
        ("cpu_mhz", clocks.cpu_khz, 1e3),
        ("gpu_mhz", clocks.gpu_hz, 1e6),
        ("emc_mhz", clocks.emc_hz, 1e6),
    ):
        if steps:
            full[key], half[key] = steps[-1] / unit, _half(steps) / unit
    modes = {"max": full}
    for key in half:
        modes["half" + key.partition("_")[0]] = {**full, key: half[key]}
    modes["half"] = half
    return {name: PowerMode.model_validate(mode) for name, mode in modes.items()}


def _half(steps: tuple[int, ...]) -> int:
    """Return the clock step nearest to half of the highest; `steps` ascend."""
    return min(steps, key=lambda step: abs(step - steps[-1] / 2))


def _scale(device: Device, n_epochs: int) -> float:
    """Return the scale of the data set, 0.01 to 1, at which the epochs take about `TARGET_S`."""
    samples_per_s = device.guess_samples_per_s.get(MODEL, 30.0)
    scale = TARGET_S / n_epochs * samples_per_s / SLOWER / SAMPLES
    return min(1.0, max(0.01, float(f"{scale:.2g}")))
