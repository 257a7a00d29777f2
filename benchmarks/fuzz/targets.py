"""What `benchmarks.fuzz` feeds with damaged inputs: every reader of a file that is not the code's.

A reader has a good input to begin with and a function that takes the damaged bytes. It may return
whatever it likes or raise an EpochwattError that names the file; for a few, the error that their
docstrings name.
"""

import functools
import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks import template
from benchmarks.fuzz import machine
from benchmarks.fuzz.target import Target, on_file, written_to
from benchmarks.results import REPOSITORY
from contrib.import_2023.logs import KINDS, read_folder
from epochwatt import columns
from epochwatt.analysis import collect_idle as idle
from epochwatt.analysis import collect_study as tables
from epochwatt.analysis import compare
from epochwatt.board.device import notes
from epochwatt.board.records import checksums
from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.board.records.run_folder import RunFolder
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
from epochwatt.sweeps.facts import SweepFacts
from epochwatt.twin.boards import load_boards, load_samples
from epochwatt.twin.parameters import load_parameters
from tests.fakeboard import replay
from tests.unit.contrib.scripts_2023 import write_run


def targets(folder: Path) -> list[Target]:
    """Return all targets; `folder` holds a template (benchmarks.template) and takes what they need.

    Each works in a folder of its own below it.
    """
    makers = (
        records,
        modes,
        attempts,
        results,
        data_sets,
        configuration,
        papers,
        bundles,
        logs,
        others,
    )
    return [target for make in (*makers, machine.targets) for target in make(folder)]


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
    shutil.copytree(epoch.folder, sweep.begin(mode), dirs_exist_ok=True)
    of_mode = {"sweep": "sweep-a", "mode": mode, "task": "train", "repeat": 0}
    sweep.finish(mode, {**epoch.meta, **of_mode}, epoch.minibatch_s)
    path = Path(sweep.mode_path(mode))
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
    source = {
        **{
            "run": template.RUN,
            "schema_version": columns.SCHEMA_VERSION,
            "factors": {**told, "imported": "scripts-2023"},
        },
        **{"canonical": json.dumps(told)},
    }
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
