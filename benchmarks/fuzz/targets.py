"""What `benchmarks.fuzz` feeds with damaged inputs: every reader of a file that is not the code's.

A reader has a good input to begin with and a function that takes the damaged bytes. It may return
whatever it likes or raise an EpochwattError that names the file; for a few, the error that their
docstrings name.
"""

import contextlib
import functools
import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

from benchmarks import template
from benchmarks.fuzz import Target, on_file, written_to
from benchmarks.results import REPOSITORY
from contrib.import_2023.logs import KINDS, read_folder
from epochwatt import columns
from epochwatt.analysis import collect_idle as idle
from epochwatt.analysis import collect_study as tables
from epochwatt.analysis import compare
from epochwatt.board.device import (
    alarms,
    board_files,
    clocks,
    host,
    notes,
    root_helper,
    storage,
)
from epochwatt.board.device.identity import identify
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.machine import Machine
from epochwatt.board.records import checksums
from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.telemetry import jtop_source
from epochwatt.board.telemetry.board import BoardSource
from epochwatt.board.telemetry.host import HostSource
from epochwatt.board.telemetry.ina3221 import Ina3221Source
from epochwatt.board.telemetry.rapl import RaplSource
from epochwatt.board.telemetry.source import READ_ERRORS
from epochwatt.board.telemetry.tegrastats import parse_line
from epochwatt.board.training import cifar, idx, landmarks
from epochwatt.board.training.data import JpegTree, folder_name, open_dataset
from epochwatt.board.training.sweep import read_modes
from epochwatt.claims import expression
from epochwatt.claims.evaluate import TAKEAWAYS, evaluate, load_claims, namespace
from epochwatt.claims.number_sources import EpochTable, Row, read_rows
from epochwatt.claims.tolerances import load_terms
from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import recipe
from epochwatt.published import numbers as published
from epochwatt.study.imported import SOURCE, imported_runs
from epochwatt.study.settings import load_settings
from epochwatt.sweeps import collect_sweep
from epochwatt.sweeps.modes import SweepFacts
from epochwatt.twin.boards import load_boards, load_samples
from epochwatt.twin.parameters import load_parameters
from tests.fakeboard import replay
from tests.fakeboard.board import make_board
from tests.unit.contrib.scripts_2023 import write_run


def targets(folder: Path) -> list[Target]:
    """Return all targets; `folder` holds a template (benchmarks.template) and takes what they need.

    Each works in a folder of its own below it.
    """
    makers = (records, modes, attempts, results, data_sets, configuration, papers)
    makers += (bundles, logs, others, machines)
    return [target for make in makers for target in make(folder)]


def copy_of(folder: Path, name: str) -> Path:
    """Return a copy of the template for one target."""
    target = folder / "targets" / name
    for part in ("data", "measured", "results"):
        shutil.copytree(folder / part, target / part, dirs_exist_ok=True)
    return target


def records(folder: Path) -> Iterator[Target]:
    """The files of a measured epoch, read as `collect_run` does."""
    place = copy_of(folder, "records")
    epoch = place / "measured" / template.RUN / "epoch-0"
    whole = place / "whole"
    shutil.copytree(epoch, whole)

    def collect(name: str, signed: bool, content: bytes) -> None:
        shutil.rmtree(place / "measured")  # a damaged epoch went to the trash
        shutil.copytree(whole, epoch)
        (epoch / name).write_bytes(content)
        if signed:
            if name == "minibatches.npy":
                record = json.loads((epoch / "record.json").read_text("utf-8"))
                record["minibatches_sha256"] = hashlib.sha256(content).hexdigest()
                (epoch / "record.json").write_text(json.dumps(record), "utf-8")
            checksums.write_sums(str(epoch), durable=False)
        template.collect(place, epochs=1)

    for name, kind, share in (
        ("record.json", "json", 20),
        ("telemetry.json", "json", 20),
        ("samples-host.csv", "table", 10),
        ("samples-synthetic.csv", "table", 20),
        ("minibatches.npy", "binary", 10),
        ("SHA256SUMS", "text", 5),
    ):
        goods = [(whole / name).read_bytes()]
        read = functools.partial(collect, name, False)
        yield Target(name, kind, goods, read, epoch.name, (), share / 4)
        if name == "record.json":
            goods.append(_of_a_board(goods[0]))
        if name != "SHA256SUMS":
            read = functools.partial(collect, name, True)
            yield Target(f"{name}, signed", kind, goods, read, epoch.name, (), share)


def modes(folder: Path) -> Iterator[Target]:
    """The record of a mode, and the list of a sweep's modes."""
    place = copy_of(folder, "modes")
    mode = {"cores": 2, "gpu_mhz": 318.75}
    sweep = SweepFolder(str(place / "measured"), "sweep-a")
    epoch = RunFolder(str(place / "measured"), template.RUN).read(0)
    shutil.copytree(epoch.folder, sweep.open_attempt(mode), dirs_exist_ok=True)
    of_mode = {"sweep": "sweep-a", "mode": mode, "task": "train", "repeat": 0}
    sweep.finish(mode, {**epoch.meta, **of_mode}, epoch.minibatch_s)
    path = Path(sweep.path_of(mode))
    words = ("name", "id", "device", "instance", "workload", "factors")
    facts = SweepFacts(
        **dict.fromkeys(words, "a"),
        **{"provenance": "measured", "task": "train", "batch_size": 16, "precision": ""},
        modes=[],
    )
    effects = columns.FLAG_EFFECTS
    goods = [(path / "mode.json").read_bytes()]

    def read(content: bytes) -> None:
        (path / "mode.json").write_bytes(content)
        checksums.write_sums(str(path), durable=False)
        collect_sweep.mode_row(sweep.verify(mode), facts, effects)

    yield Target("mode.json, signed", "json", goods, read, path.name)
    grid = place / "modes.json"
    grid.write_text(json.dumps([mode, {"cores": 4}]), "utf-8")
    yield on_file(grid, "json", lambda: read_modes(str(grid)))


def _of_a_board(record: bytes) -> bytes:
    """Return the record with what a board adds to it."""
    clocks = {"cores_online": [0, 1], "cpu_mhz": 1190.4, "gpu_mhz": None, "emc_mhz": 2133.0}
    mode = {"requested": {}, "resolved": clocks, "read_back": clocks, "verified": True}
    board = {"power_mode": {**mode, "dvfs": "off"}, "busy_pct": 1.5, "settled": {"steady": True}}
    return json.dumps({**json.loads(record), "board": board}).encode("utf-8")


def attempts(folder: Path) -> Iterator[Target]:
    """What is found when an epoch is begun."""
    place = copy_of(folder, "attempts")
    runs = RunFolder(str(place / "measured"), template.RUN)
    runs.begin(template.EPOCHS)
    path = Path(runs.attempt_path(template.EPOCHS)) / "attempt.json"
    good = path.read_bytes()

    def begin(content: bytes) -> None:
        path.write_bytes(content)
        assert isinstance(runs.begin(template.EPOCHS)["started_unix_s"], (int, float))  # type: ignore[index]

    yield Target("attempt.json", "json", [good], begin)
    notes.remember("a" * 32, template.RUN, 1)
    last = next(Path(tempfile.gettempdir()).glob(f"*/{notes.LAST}"))
    meta = runs.read(1).meta
    yield on_file(last, "json", lambda: notes.interruption(meta))


def results(folder: Path) -> Iterator[Target]:
    """What Snakemake's jobs leave for each other and for other tools."""
    place = copy_of(folder, "results")
    run = place / "results/runs" / template.RUN
    run.mkdir(parents=True)
    epochs = Path(shutil.copy2(place / "results/epochs.csv", run))
    yield on_file(epochs, "table", lambda: tables.read_epochs([epochs]), share=5)
    told = str(place / "results")
    compared = place / "compared"
    shutil.copytree(place / "results", compared)
    other = compared / "runs" / template.RUN / "epochs.csv"
    yield on_file(
        other, "table", lambda: compare.compare_lines(told, str(compared), 5.0), "compare", "", 3
    )
    yield on_file(epochs, "table", lambda: read_rows([epochs]), "epochs.csv of claims")


def data_sets(folder: Path) -> Iterator[Target]:
    """Data sets in the formats of the papers; whoever changes them, changes the manifest too."""
    place = copy_of(folder, "data")
    told = json.loads((folder / "factors.json").read_text("utf-8"))
    manifest = place / "data" / folder_name("mnist", "digits", template.SCALE) / "manifest.json"
    read = functools.partial(open_dataset, str(place / "data"), told)
    yield on_file(manifest, "json", read, place=manifest.parent.name)
    good = idx.encode(np.arange(60, dtype=np.uint8).reshape(3, 4, 5))
    yield Target("IDX", "binary", [good], lambda c: idx.decode(c, "a-file"), "a-file")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)
    batch = cifar.encode(pixels, [3, 8], ["a.png", "b.png"], "batch 1")
    yield Target("CIFAR batch", "binary", [batch], lambda c: cifar.decode(c, "a-file"), "a-file")
    rows = [landmarks.Row(f"u{n}", f"{n:016x}", n) for n in range(20)]
    good = landmarks.encode_map(rows)
    yield Target("map", "table", [good], lambda c: landmarks.decode_map(c, "a-file"), "a-file")
    yield _picture(folder)


def _picture(folder: Path) -> Target:
    told = recipe("gld23k", "synthetic", 0.0002)
    tree = folder / "targets/pictures"
    make_dataset(tree, told)
    reader = JpegTree(str(tree), json.loads((tree / "manifest.json").read_text("utf-8")))
    path = Path(reader.paths[0])
    formats = {}
    with Image.open(path) as image:
        small = image.resize((40, 30))
    for name in ("JPEG", "PNG", "BMP", "GIF", "WEBP"):
        buffer = io.BytesIO()
        small.save(buffer, name)
        formats[name] = buffer.getvalue()
    read = written_to(path, lambda: reader.read(0))
    return Target("picture", "binary", list(formats.values()), read, path.name, share=10)


def configuration(folder: Path) -> Iterator[Target]:
    """config/, read as every start of the workflow does; and the twin's tables."""
    place = folder / "targets/config"
    shutil.copytree(REPOSITORY / "config", place / "config")
    selected = "studies: [host-pipeline]\n"
    (place / "config/config.yaml").write_text(selected, "utf-8")

    def load() -> None:
        load_settings(root=place)

    names = {"config": 2, "studies": 2, "workloads": 2, "exclusions": 2, "flags": 1}
    for name, share in (names | {"plotting": 1, "devices/host": 2}).items():
        path = place / f"config/{name}.yaml"
        yield on_file(path, "yaml", load, f"config/{name}.yaml", "config/", share)
    twin = place / "config/twin"
    readers = {"boards": load_boards, "parameters": load_parameters, "samples": load_samples}
    for name, read in readers.items():
        load_twin = functools.partial(read, twin)
        yield on_file(twin / f"{name}.yaml", "yaml", load_twin, f"twin/{name}.yaml", share=4)
    plug = place / "config/idle_plug.csv"
    plug.write_text("device,instance,power_mode,state,power_w\nnx,local,maxn,ii,3.5\n", "utf-8")
    yield on_file(plug, "table", lambda: idle.plug_rows(str(plug)))
    claims = place / "config/claims.yaml"
    yield on_file(claims, "yaml", lambda: load_terms(place), share=5)


class _Ones(EpochTable):
    """A table in which every number is 1."""

    def number(self, metric: str, factors: Row, epoch: str) -> float:
        return 1.0


def papers(folder: Path) -> Iterator[Target]:
    """The papers' numbers and predicates."""
    place = folder / "targets/papers"
    shutil.copytree(REPOSITORY / "config", place / "config")
    terms = load_terms(place)
    for name in (published.MEASUREMENTS, published.RELATIONS):
        path = place / "config/published" / name
        yield on_file(
            path, "table", lambda: published.load_published(place / "config/published"), share=2
        )
    path = place / TAKEAWAYS
    yield on_file(path, "table", lambda: load_claims(place), place="takeaways", share=2)
    claims = load_claims(place)
    names = [namespace(source, "sigmetrics2023", terms) for source in (_Ones(), EpochTable())]

    def judge(content: bytes) -> None:
        text = content.decode("utf-8", "replace")
        for namespace_ in names:
            expression.judge(expression.parse(text, "a-place", namespace_), namespace_)

    goods = [claim.predicate.encode("utf-8") for claim in claims]
    yield Target("predicate", "text", goods, judge, "a-place", share=20)
    first = claims[0]
    evaluate([first], EpochTable(), terms)  # the readers above need it whole


def bundles(folder: Path) -> Iterator[Target]:
    """What strangers send: archives, and whole archives with a damaged file in them."""
    about = {
        **{"schema_version": replay.SCHEMA_VERSION, "board": None, "links": {"sys/b": "sys/a"}},
        **{"nvpmodel": None, "errors": {"sys/c": {"errno": 5, "when": "read"}}},
    }
    members = {"bundle.json": json.dumps(about).encode(), "files/sys/a": b"1\n"}

    def unpack(content: bytes) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            bundle = Path(place) / "bundle.tar.gz"
            bundle.write_bytes(content)
            replay.unpack(bundle, Path(place) / "board")

    def with_about(content: bytes) -> None:
        unpack(_archive({**members, "bundle.json": content}))

    def uncompressed(content: bytes) -> None:
        unpack(gzip.compress(content, 1))

    good = _archive(members)
    yield Target("bundle", "binary", [good], unpack, "")
    yield Target("bundle, unpacked", "binary", [gzip.decompress(good)], uncompressed, "")
    yield Target("bundle.json", "json", [members["bundle.json"]], with_about, "")


def _archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(f"{replay.TOP}/{name}")
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return buffer.getvalue()


def logs(folder: Path) -> Iterator[Target]:
    """Logs of the 2023 scripts."""
    place = folder / "targets/logs"
    write_run(place, epochs=2, n=3)
    for kind in sorted(KINDS):
        path = place / f"mn_nw4_pf2_{kind}.csv"
        if path.exists():
            yield on_file(path, "table", lambda: read_folder(place), f"log {kind}", "mn_nw4", 5)


def others(folder: Path) -> Iterator[Target]:
    """Runs that were imported, and the papers' checkpoint."""
    place = folder / "targets/imported"
    path = place / "measured" / template.RUN / SOURCE
    path.parent.mkdir(parents=True)
    told = json.loads((folder / "factors.json").read_text("utf-8"))
    source = {"run": template.RUN, "schema_version": columns.SCHEMA_VERSION}
    source |= {"factors": {**told, "imported": "scripts-2023"}, "canonical": json.dumps(told)}
    path.write_text(json.dumps(source), "utf-8")
    yield on_file(path, "json", lambda: [r.parts for r in imported_runs(place).values()])
    checkpoint = next(copy_of(folder, "checkpoint").glob("measured/*/epoch-2/checkpoint*"))
    read = written_to(checkpoint, lambda: _load(str(checkpoint)))
    yield Target("checkpoint", "binary", [checkpoint.read_bytes()], read, share=1)


def _load(path: str) -> bool:
    import torch

    from epochwatt.board.training import checkpoint
    from epochwatt.board.training.workloads import WORKLOADS, Trainer

    torch.set_num_threads(1)  # a child that is forked from OpenMP's threads waits for them for ever
    return checkpoint.load(path, Trainer(WORKLOADS["lenet"], torch.device("cpu"), 0))


BOARDS = ("agx_xavier", "agx_orin-jp6", "nano")
TEGRASTATS = (
    b"11-21-2025 08:49:48 RAM 13983/62780MB (lfb 424x4MB) SWAP 126/31390MB (cached 0MB) CPU "
    b"[90%@2201,off] EMC_FREQ 1%@2133 GR3D_FREQ 0%@[0,114] NVENC off cpu@48.5C tj@-256C "
    b"VDD_GPU_SOC 3197mW/3197mW VIN_SYS_5V0 5045mW/5045mW",
    b"RAM 1766/3964MB (lfb 197x4MB) SWAP 0/2048MB (cached 0MB) IRAM 0/252kB(lfb 252kB) CPU "
    b"[24%@1224,15%@1224,off] EMC_FREQ 6%@1600 GR3D_FREQ 7%@768 APE 25 PLL@30C POM_5V_IN 2518/2518",
)
JTOP = {
    "power": {
        "rail": {"VDD_GPU_SOC": {"power": 8000, "online": True}, "VIN_SYS_5V0": {"power": 9000}},
        "tot": {"power": 17000, "name": "VDD_IN"},
    },
    "gpu": {"ga10b": {"status": {"load": 62.5}, "freq": {"cur": 918000}}},
    "memory": {"RAM": {"tot": 1}, "EMC": {"cur": 2133000, "val": 30}},
    "fan": {"pwmfan": {"speed": [20.0]}},
    "temperature": {"CPU": {"temp": 48.5, "online": True}, "CV0": {"temp": -256}},
}
JTOP_3 = {
    "power": [{"cur": 9000, "avg": 1}, {"GPU": {"cur": 8000}, "SYS5V": {"cur": 1000}}],
    "gpu": {"val": 17, "frq": 921600},
    "emc": {"val": 6, "frq": 1600000},
    "fan": {"measure": 33.5},
    "temperature": {"CPU": 31.5, "thermal": 30.0},
}
PROC = {
    "proc/stat": "cpu  100 0 100 700 50 0 0 0 0 0\ncpu0 1 2 3\n",
    "proc/meminfo": "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n"
    "SwapTotal: 2048 kB\nSwapFree: 9 kB\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\n",
    "proc/self/mountinfo": "26 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw\n"
    "30 26 0:22 / /mnt/a\\040b rw - tmpfs tmpfs rw\n",
    "proc/100/stat": "100 (odd) na(me) S 1 0 0 0 0 0 0 0 0 0 5 6 7 8 20 0\n",
    "proc/100/io": "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n",
    "proc/100/task/100/children": "101 102 ",
    "proc/sys/kernel/random/boot_id": "e49086e4-5926-4b04-b926-e87bcce2e55c\n",
    "sys/dev/block/8:1/stat": "10 0 20 0 7 0 30 0 0 0 0\n",
    "sys/class/powercap/intel-rapl:0/name": "package-0\n",
    "sys/class/powercap/intel-rapl:0/energy_uj": "123456\n",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850\n",
    "sys/block/sda/queue/rotational": "1\n",
}


def machines(folder: Path) -> Iterator[Target]:
    """What a machine tells: /proc, /sys, nvpmodel.conf, tegrastats, jtop."""
    yield from _host(folder / "targets/host")
    for kind in BOARDS:
        yield from _board(folder / "targets" / kind, kind)
    goods = [*TEGRASTATS, *(line[: len(line) // 2] for line in TEGRASTATS)]

    def read(content: bytes) -> None:
        parse_line(content.decode("utf-8", "replace"))

    yield Target("tegrastats line", "text", goods, read, share=20)
    for name, told in (("jtop 4", JTOP), ("jtop 3", JTOP_3)):
        good = json.dumps(told).encode("utf-8")
        yield Target(name, "json", [good], _jtop(told), "", READ_ERRORS)
    yield from _clocks(folder / "targets/clocks")


def _jtop(good: dict[str, Any]) -> Callable[[bytes], Any]:
    """Return a reader of what jtop's client shows; what no client could show is left out."""

    def read(content: bytes) -> Any:
        try:
            told = json.loads(content)
        except (ValueError, RecursionError):
            return None
        shown = {key: told.get(key) if isinstance(told, dict) else None for key in good}
        if isinstance(shown["power"], list):
            shown["power"] = tuple(shown["power"])
        if isinstance(good["power"], list):
            fan = shown["fan"]
            shown["fan"] = types.SimpleNamespace(**fan) if isinstance(fan, dict) else None
        return jtop_source.reading(types.SimpleNamespace(**shown), "agx_xavier")

    return read


def _write(root: Path, texts: dict[str, str]) -> list[Path]:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return [root / name for name in texts]


def _host(root: Path) -> Iterator[Target]:
    paths = _write(root, PROC)
    settings = {"backend": "host", "root": str(root), "kind": "", "unit": "", "storage": {}}
    machine = Machine(settings)

    def read() -> None:
        machine.events()
        machine.busy_pct(0.0)
        storage.media(str(root))
        storage.medium_of("/mnt/a b/c", str(root))
        _sampled(lambda: HostSource(str(root), 100, str(root)))
        _sampled(lambda: RaplSource(str(root), sleep=lambda s: None))
        plain = host._read
        with mock.patch.object(host, "_read", lambda path: plain(str(root) + path)):
            host.describe()
            host.boot_id()

    for path in paths:
        yield on_file(path, "text", read, str(path.relative_to(root)), "", 3)


def _sampled(make: Callable[[], Any]) -> None:
    """Read a source twice; what it documents is caught by `discover` and by the sampler."""
    source = None
    try:
        source = make()
        source.start()
        for _ in range(2):
            source.values(source.take())
        source.settings()
    except READ_ERRORS:
        pass
    finally:
        if source is not None:
            source.close()


def _board(root: Path, kind: str) -> Iterator[Target]:
    make_board(root, kind)
    _write(root, {n: t for n, t in PROC.items() if not (root / n).exists()})
    settings = {"backend": "fake", "root": str(root), "kind": "", "unit": "", "storage": {}}

    def read() -> None:
        board = JetsonBoard(settings)
        board.describe()
        board.events()
        identity = identify(str(root))
        clocks.summary(board_files.read_clocks(str(root)))
        alarms.throttling(str(root))
        alarms.over_current(str(root))
        _sampled(lambda: BoardSource(str(root)))
        _sampled(lambda: Ina3221Source(str(root), identity.kind if identity else ""))

    # files that are read, but for the programs
    for path in sorted(p for place in ("sys", "proc", "etc") for p in (root / place).rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield on_file(path, "text", read, f"{kind}: {path.relative_to(root)}", "", 0.3)


def _clocks(root: Path) -> Iterator[Target]:
    make_board(root, "agx_xavier")
    path = root / "etc/nvpmodel.conf"
    steps = {"cpu_mhz": [100.0, 200.0], "gpu_mhz": [], "emc_mhz": [300.0]}

    def read() -> None:
        conf = board_files.board_conf(str(root))
        for mode in conf.modes:
            clocks.limits(mode, steps)
        board_files.custom_conf(conf, 0, 0, 0, 0, board_files.tables(str(root)))

    target = on_file(path, "text", read, "nvpmodel.conf", "")
    yield target._replace(allowed=(ValueError,))  # its docstring; the callers say where
    state = {"boot_id": "a", "mode": 1, "pinned": False, "fan_is_max": False, "fan": {}}
    good = json.dumps({**state, "fan_service": False}).encode("utf-8")
    helper = root / "state"
    helper.mkdir()

    def restore(content: bytes) -> None:
        (helper / root_helper.STATE).write_bytes(content)
        with contextlib.chdir(helper):
            root_helper.stored()

    errors = (root_helper.HelperError,)
    yield Target("root helper's state", "json", [good], restore, "", errors)
