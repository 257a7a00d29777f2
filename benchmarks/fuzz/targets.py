"""What `benchmarks.fuzz` feeds with damaged inputs: every reader of a file that is not the code's.

A reader has a good input to begin with and a function that takes the damaged bytes. It may return
whatever it likes or raise an EpochwattError that names the file; for a few, the error that their
docstrings name. A name is the row of the table, and what of it after a colon.
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
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from PIL import Image

from benchmarks import template
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

Read = Callable[[bytes], Any]


class Target(NamedTuple):
    """A reader and what it is fed with."""

    name: str
    kind: str  # of damage: benchmarks.fuzz.mutations
    goods: list[bytes]  # inputs to begin with
    read: Read
    place: str = ""  # what an error has to name; empty: its caller adds it
    allowed: tuple[type[Exception], ...] = ()  # beside EpochwattError, as its docstring says
    share: float = 10  # of all inputs, relative to the others


def written_to(path: Path, then: Callable[[], Any]) -> Read:
    """Return a reader that puts the bytes into a file, and the good ones back when it has read."""
    good = path.read_bytes()

    def read(content: bytes) -> Any:
        path.unlink(missing_ok=True)  # it may be a hard link
        path.write_bytes(content)
        try:
            return then()
        finally:
            path.write_bytes(good)

    return read


def on_file(
    path: Path,
    kind: str,
    then: Callable[[], Any],
    name: str = "",
    place: str | None = None,
    share: float = 10,
) -> Target:
    """Return the target of a file that `then` reads; its errors name the file, or `place`."""
    where = path.name if place is None else place
    goods = [path.read_bytes()]
    return Target(name or path.name, kind, goods, written_to(path, then), where, (), share)


def targets(folder: Path) -> list[Target]:
    """Return all targets; `folder` holds a template (benchmarks.template) and takes what they need.

    Each works in a folder of its own below it.
    """
    makers = (records, modes, attempts, results, data_sets, configuration, papers)
    makers += (
        bundles,
        logs,
        imported,
        checkpoint,
        host_files,
        boards,
        tegrastats,
        jtop,
        clock_files,
    )
    return [target for make in makers for target in make(folder)]


def copy_of(folder: Path, name: str) -> Path:
    """Return a copy of the template for one target."""
    target = folder / "targets" / name
    for part in ("data", "measured", "results"):
        shutil.copytree(folder / part, target / part, dirs_exist_ok=True)
    return target


def records(folder: Path) -> Iterator[Target]:
    """The files of a measured epoch, read as `collect_run` does; also with new checksums."""
    place = copy_of(folder, "records")
    epoch, whole = place / "measured" / template.RUN / "epoch-0", place / "whole"
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

    record = (whole / "record.json").read_bytes()
    for name, kind, share in (
        ("record.json", "json", 20),
        ("telemetry.json", "json", 20),
        ("samples-host.csv", "table", 10),
        ("samples-synthetic.csv", "table", 20),
        ("minibatches.npy", "binary", 10),
        ("SHA256SUMS", "text", 5),
    ):
        row = "samples-*.csv" if name.startswith("samples") else name
        for words, signed in (("as it is", False), ("signed", True)):
            goods = [(whole / name).read_bytes()]
            if name == "record.json" and signed:
                goods.append(_of_a_board(record))
            if name != "SHA256SUMS" or not signed:
                read = functools.partial(collect, name, signed)
                part = share if signed else share / 4
                yield Target(f"{row}: {name} {words}", kind, goods, read, epoch.name, (), part)


def _of_a_board(record: bytes) -> bytes:
    """Return the record with what a board adds to it."""
    clocks = {"cores_online": [0, 1], "cpu_mhz": 1190.4, "gpu_mhz": None, "emc_mhz": 2133.0}
    mode = {"requested": {}, "resolved": clocks, "read_back": clocks, "verified": True}
    board = {"power_mode": {**mode, "dvfs": "off"}, "busy_pct": 1.5, "settled": {"steady": True}}
    return json.dumps({**json.loads(record), "board": board}).encode("utf-8")


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
    goods = [(path / "mode.json").read_bytes()]

    def read(content: bytes) -> None:
        (path / "mode.json").write_bytes(content)
        checksums.write_sums(str(path), durable=False)
        collect_sweep.mode_row(sweep.verify(mode), facts, columns.FLAG_EFFECTS)

    yield Target("mode.json", "json", goods, read, path.name)
    grid = place / "modes.json"
    grid.write_text(json.dumps([mode, {"cores": 4}]), "utf-8")
    yield on_file(grid, "json", lambda: read_modes(str(grid)))


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
    told, other = str(place / "results"), str(place / "compared")
    shutil.copytree(told, other)
    compared = Path(other, "runs", template.RUN, "epochs.csv")
    yield on_file(
        compared, "table", lambda: compare.compare_lines(told, other, 5.0), "compare", "", 3
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
    good = landmarks.encode_map([landmarks.Row(f"u{n}", f"{n:016x}", n) for n in range(20)])
    yield Target("map", "table", [good], lambda c: landmarks.decode_map(c, "a-file"), "a-file")
    tree = folder / "targets/pictures"
    make_dataset(tree, recipe("gld23k", "synthetic", 0.0002))
    reader = JpegTree(str(tree), json.loads((tree / "manifest.json").read_text("utf-8")))
    path, pictures = Path(reader.paths[0]), []
    with Image.open(path) as image:
        for name in ("JPEG", "PNG", "BMP", "GIF", "WEBP"):
            buffer = io.BytesIO()
            image.resize((40, 30)).save(buffer, name)
            pictures.append(buffer.getvalue())
    yield Target("picture", "binary", pictures, written_to(path, lambda: reader.read(0)), path.name)


def configuration(folder: Path) -> Iterator[Target]:
    """config/, read as every start of the workflow does; and the twin's tables."""
    place = folder / "targets/config"
    shutil.copytree(REPOSITORY / "config", place / "config")
    (place / "config/config.yaml").write_text("studies: [host-pipeline]\n", "utf-8")
    names = {"config": 2, "studies": 2, "workloads": 2, "exclusions": 2, "flags": 1, "plotting": 1}
    for name, share in (names | {"devices/host": 2}).items():
        path, row = place / f"config/{name}.yaml", f"config/*.yaml: {name}"
        yield on_file(path, "yaml", lambda: load_settings(root=place), row, "config/", share)
    twin = place / "config/twin"
    readers = {"boards": load_boards, "parameters": load_parameters, "samples": load_samples}
    for name, read in readers.items():
        load_twin = functools.partial(read, twin)
        yield on_file(
            twin / f"{name}.yaml", "yaml", load_twin, f"config/twin/*.yaml: {name}", share=4
        )
    plug = place / "config/idle_plug.csv"
    plug.write_text("device,instance,power_mode,state,power_w\nnx,local,maxn,ii,3.5\n", "utf-8")
    yield on_file(plug, "table", lambda: idle.plug_rows(str(plug)))
    yield on_file(place / "config/claims.yaml", "yaml", lambda: load_terms(place), share=5)


class _Ones(EpochTable):
    """A table in which every number is 1."""

    def number(self, metric: str, factors: Row, epoch: str) -> float:
        return 1.0


def papers(folder: Path) -> Iterator[Target]:
    """The papers' numbers and predicates."""
    place = folder / "targets/papers"
    shutil.copytree(REPOSITORY / "config", place / "config")
    terms, numbers = load_terms(place), place / "config/published"
    for name in (published.MEASUREMENTS, published.RELATIONS):
        yield on_file(numbers / name, "table", lambda: published.load_published(numbers), share=2)
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
    evaluate(claims[:1], EpochTable(), terms)  # the readers above need it whole


def bundles(folder: Path) -> Iterator[Target]:
    """What strangers send: archives, and whole archives with a damaged file in them."""
    about = {
        **{"schema_version": replay.SCHEMA_VERSION, "board": None, "links": {"sys/b": "sys/a"}},
        **{"nvpmodel": None, "errors": {"sys/c": {"errno": 5, "when": "read"}}},
    }

    def archive(about: bytes) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as members:
            for name, content in {"bundle.json": about, "files/sys/a": b"1\n"}.items():
                member = tarfile.TarInfo(f"{replay.TOP}/{name}")
                member.size = len(content)
                members.addfile(member, io.BytesIO(content))
        return buffer.getvalue()

    def unpack(content: bytes) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            bundle = Path(place) / "bundle.tar.gz"
            bundle.write_bytes(content)
            replay.unpack(bundle, Path(place) / "board")

    told = json.dumps(about).encode()
    good = archive(told)
    plain = gzip.decompress(good)
    yield Target("bundles: packed", "binary", [good], unpack)
    yield Target("bundles: unpacked", "binary", [plain], lambda c: unpack(gzip.compress(c, 1)))
    yield Target("bundles: bundle.json", "json", [told], lambda c: unpack(archive(c)))


def logs(folder: Path) -> Iterator[Target]:
    """Logs of the 2023 scripts."""
    place = folder / "targets/logs"
    write_run(place, epochs=2, n=3)
    for kind in sorted(KINDS):
        path, row = place / f"mn_nw4_pf2_{kind}.csv", f"logs of 2023: {kind}"
        if path.exists():
            yield on_file(path, "table", lambda: read_folder(place), row, "mn_nw4", 5)


def imported(folder: Path) -> Iterator[Target]:
    """Runs that were imported."""
    place = folder / "targets/imported"
    path = place / "measured" / template.RUN / SOURCE
    path.parent.mkdir(parents=True)
    told = json.loads((folder / "factors.json").read_text("utf-8"))
    source = {"run": template.RUN, "schema_version": columns.SCHEMA_VERSION}
    source |= {"factors": {**told, "imported": "scripts-2023"}, "canonical": json.dumps(told)}
    path.write_text(json.dumps(source), "utf-8")
    yield on_file(path, "json", lambda: [r.parts for r in imported_runs(place).values()])


def checkpoint(folder: Path) -> Iterator[Target]:
    """The checkpoint of an epoch; whatever cannot be read means fresh weights."""
    path = next(copy_of(folder, "checkpoint").glob("measured/*/epoch-2/checkpoint*"))

    def load() -> bool:
        import torch

        from epochwatt.board.training import checkpoint
        from epochwatt.board.training.workloads import WORKLOADS, Trainer

        return checkpoint.load(str(path), Trainer(WORKLOADS["lenet"], torch.device("cpu"), 0))

    yield on_file(path, "binary", load, "checkpoint", "", share=1)


# -- what a machine tells: /proc, /sys, nvpmodel.conf, tegrastats, jtop ---------------------------

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


def write_proc(root: Path) -> list[Path]:
    """Write the files of `PROC` that are not there; return them."""
    missing = [name for name in PROC if not (root / name).exists()]
    for name in missing:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(PROC[name], "utf-8")
    return [root / name for name in missing]


def sampled(make: Callable[[], Any]) -> None:
    """Read a source twice; what it documents is caught by `discover` and by the sampler."""
    with contextlib.suppress(READ_ERRORS), contextlib.closing(make()) as source:
        source.start()
        for _ in range(2):
            source.values(source.take())
        source.settings()


def host_files(folder: Path) -> Iterator[Target]:
    """/proc and /sys of a host."""
    root = folder / "targets/host"
    paths = write_proc(root)
    settings = {"backend": "host", "root": str(root), "kind": "", "unit": "", "storage": {}}
    machine, plain = Machine(settings), host._read

    def read() -> None:
        machine.events()
        machine.busy_pct(0.0)
        storage.media(str(root))
        storage.medium_of("/mnt/a b/c", str(root))
        sampled(lambda: HostSource(str(root), 100, str(root)))
        sampled(lambda: RaplSource(str(root), sleep=lambda s: None))
        with mock.patch.object(host, "_read", lambda path: plain(str(root) + path)):
            host.describe()
            host.boot_id()

    for path in paths:
        name = f"/proc and /sys of a host: {path.relative_to(root)}"
        yield on_file(path, "text", read, name, "", 3)


def boards(folder: Path) -> Iterator[Target]:
    """All files that are read of three boards, but for the programs."""
    for kind in ("agx_xavier", "agx_orin-jp6", "nano"):
        root = folder / "targets" / kind
        make_board(root, kind)
        write_proc(root)
        read = functools.partial(_read_board, str(root))
        for path in sorted(
            p for place in ("sys", "proc", "etc") for p in (root / place).rglob("*")
        ):
            if path.is_file() and not path.is_symlink():
                name = f"files of three boards: {kind} {path.relative_to(root)}"
                yield on_file(path, "text", read, name, "", 0.3)


def _read_board(root: str) -> None:
    board = JetsonBoard({"backend": "fake", "root": root, "kind": "", "unit": "", "storage": {}})
    board.describe()
    board.events()
    identity = identify(root)
    clocks.summary(board_files.read_clocks(root))
    alarms.throttling(root)
    alarms.over_current(root)
    sampled(lambda: BoardSource(root))
    sampled(lambda: Ina3221Source(root, identity.kind if identity else ""))


def tegrastats(folder: Path) -> Iterator[Target]:
    """Lines of boards of others, whole and half."""
    lines = [path.read_bytes() for path in (REPOSITORY / "tests/data/tegrastats").glob("*.txt")]
    goods = lines + [line[: len(line) // 2] for line in lines]

    def read(content: bytes) -> None:
        parse_line(content.decode("utf-8", "replace"))

    yield Target("tegrastats line", "text", goods, read, share=20)


JTOP = (
    {  # 4
        "power": {
            "rail": {
                "VDD_GPU_SOC": {"power": 8000, "online": True},
                "VIN_SYS_5V0": {"power": 9000},
            },
            "tot": {"power": 17000, "name": "VDD_IN"},
        },
        "gpu": {"ga10b": {"status": {"load": 62.5}, "freq": {"cur": 918000}}},
        "memory": {"RAM": {"tot": 1}, "EMC": {"cur": 2133000, "val": 30}},
        "fan": {"pwmfan": {"speed": [20.0]}},
        "temperature": {"CPU": {"temp": 48.5, "online": True}, "CV0": {"temp": -256}},
    },
    {  # 3
        "power": [{"cur": 9000, "avg": 1}, {"GPU": {"cur": 8000}, "SYS5V": {"cur": 1000}}],
        "gpu": {"val": 17, "frq": 921600},
        "emc": {"val": 6, "frq": 1600000},
        "fan": {"measure": 33.5},
        "temperature": {"CPU": 31.5, "thermal": 30.0},
    },
)


def jtop(folder: Path) -> Iterator[Target]:
    """What jtop's client shows; what no client could show is left out."""

    def read(good: dict[str, Any], content: bytes) -> Any:
        try:
            told = json.loads(content)
        except (ValueError, RecursionError):
            return None
        shown = {key: told.get(key) if isinstance(told, dict) else None for key in good}
        if isinstance(shown["power"], list):
            shown["power"] = tuple(shown["power"])
        if good is JTOP[1]:
            fan = shown["fan"]
            shown["fan"] = types.SimpleNamespace(**fan) if isinstance(fan, dict) else None
        return jtop_source.reading(types.SimpleNamespace(**shown), "agx_xavier")

    for good in JTOP:
        content = json.dumps(good).encode("utf-8")
        name = f"jtop's answers: version {4 if good is JTOP[0] else 3}"
        yield Target(name, "json", [content], functools.partial(read, good), "", READ_ERRORS)


def clock_files(folder: Path) -> Iterator[Target]:
    """nvpmodel.conf, and what the root helper notes."""
    root = folder / "targets/clocks"
    make_board(root, "agx_xavier")
    steps = {"cpu_mhz": [100.0, 200.0], "gpu_mhz": [], "emc_mhz": [300.0]}

    def read() -> None:
        conf = board_files.board_conf(str(root))
        for mode in conf.modes:
            clocks.limits(mode, steps)
        board_files.custom_conf(conf, 0, 0, 0, 0, board_files.tables(str(root)))

    target = on_file(root / "etc/nvpmodel.conf", "text", read, "nvpmodel.conf", "")
    yield target._replace(allowed=(ValueError,))  # its docstring; the callers say where
    state = {"boot_id": "a", "mode": 1, "pinned": False, "fan_is_max": False, "fan": {}}
    path = root / "state" / root_helper.STATE
    path.parent.mkdir()
    path.write_text(json.dumps({**state, "fan_service": False}), "utf-8")

    def restore() -> None:
        with contextlib.chdir(path.parent):
            root_helper.stored()

    target = on_file(path, "json", restore, "root helper's state", "")
    yield target._replace(allowed=(root_helper.HelperError,))
