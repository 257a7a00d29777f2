"""`python -m contrib.import_2023`: rows, energies and ids of imported runs; what is refused."""

import csv
import math
import re

import pytest
from scripts_2023 import power_w, sources, write_run

from contrib.import_2023.records import RunOptions, import_folder
from epochwatt import columns
from epochwatt.analysis.collect_study import read_epochs, summarise_runs
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.epochs.collect import collect_run
from epochwatt.errors import ConfigError, RecordError
from epochwatt.study.imported import imported_runs
from epochwatt.study.runs import canonical_json, run_id

AGX = """\
title: a board
backends: [jetson]
board: agx_xavier
instances: [d1, d2]
storage:
  ssd: {title: a disk, root: /mnt/ssd}
  sd: {title: a card, root: /mnt/sd}
power_modes:
  g: {cores: 8, gpu_mhz: 1377}
  a: {cores: 4}
dvfs: ["off", "on"]
"""
RESNET = """\
resnet:
  title: ResNet-18
  dataset: cifar10
  dataset_source: synthetic
  guess_samples_per_s: 29
own:
  title: a network of a user
  dataset: cifar10
  dataset_source: synthetic
  guess_samples_per_s: 29
  build: mine.network
  like: resnet
"""
OPTIONS = {
    **{"device": "agx", "instance": "d1", "model": "resnet", "storage": "ssd"},
    "batch_size": 10_000,  # 5 mini-batches of CIFAR-10's 50,000
    **{"power_mode": "g", "dvfs": "off"},
}


@pytest.fixture(autouse=True)
def board(checkout):
    """A checkout that knows the board and the network of the logs."""
    checkout.write("devices/agx.yaml", AGX)
    text = (checkout.path / "config/workloads.yaml").read_text("utf-8")
    checkout.write("workloads.yaml", text + RESNET)
    return checkout


@pytest.fixture
def logs(tmp_path):
    """Return a function that writes a run of the scripts into tmp_path/logs."""
    return lambda *without, **about: write_run(tmp_path / "logs", *without, **about)


@pytest.fixture
def take(tmp_path):
    """Return a function that imports tmp_path/logs; it gives the lines."""
    return lambda **changes: import_folder(tmp_path / "logs", RunOptions(**{**OPTIONS, **changes}))


@pytest.fixture
def imported(checkout):
    """Return a function that collects the one imported run: its source, its tables as cells."""

    def read():
        (source,) = sources(checkout.path / "measured")
        folder = checkout.path / f"results/runs/{source['run']}"
        paths = [folder / f"{name}.csv" for name in ("epochs", "energy")]
        n_epochs = len(RunFolder("measured", source["run"]).measured())
        effects = checkout.settings().flag_effects
        collect_run("measured", source["run"], n_epochs, effects, *map(str, paths))
        tables = []
        for path in paths:
            with path.open(newline="", encoding="utf-8") as handle:
                tables.append(list(csv.DictReader(handle)))
        return source, *tables

    return read


@pytest.fixture
def collected(logs, take, imported):
    """Return a function that writes logs, edits their file of a kind, imports and collects them."""

    def call(*without, kind="", edit=None, **about):
        run = logs(*without, **about)
        if edit is not None:
            path = run.path(kind)
            before = path.read_text("utf-8")
            path.write_text(edit(before, run), "utf-8")
            assert path.read_text("utf-8") != before
        take()
        return imported()

    return call


def test_rows_have_the_times_of_the_logs_and_nothing_that_the_scripts_did_not_tell(collected):
    _, rows, energies = collected()
    assert tuple(rows[0]) == columns.names(columns.RUN_EPOCH_COLUMNS)
    assert tuple(energies[0]) == columns.names(columns.RUN_ENERGY_COLUMNS)
    assert [row["epoch"] for row in rows] == [row["epoch"] for row in energies] == list("012")
    times = {"e2e_s": 15.625, "stall_s": 5.0, "compute_s": 10.0, "overhead_s": 0.625}
    assert {name: float(rows[1][name]) for name in times} == times
    assert (rows[1]["n_minibatches"], rows[1]["n_samples"]) == ("5", "50000")
    assert rows[1]["timing_method"] == "imported_cuda_events"
    unknown = ["wait_s", "copy_s", "fetch_s", "preprocess_s", "host_wait_s", "loss", "protocol"]
    unknown += ["t_start_unix_s", "t_end_unix_s", "stall_energy_j"]
    assert [{row[name] for name in unknown} for row in rows] == [{""}] * 3
    known = {"cpu_util_pct": 30, "gpu_util_median_pct": 75, "ram_used_mib": 2048}
    known |= {"read_iops": 20, "read_mib_s": 1.25}
    assert {k: float(rows[0][k]) for k in known} == pytest.approx(known)
    cached = [(row["cached_pct"], row["cached_after_pct"]) for row in rows]
    assert cached == [("10.0", "50.0"), ("50.0", "90.0"), ("90.0", "90.0")]
    flags = "imported power_sampling_regular stall_power_unresolved"
    assert [row["flags"] for row in rows] == [f"cold_process {flags}", flags, flags]
    assert {row["valid"] for row in rows} == {"True"}
    assert [row["cold_process"] for row in rows] == ["True", "False", "False"]


def test_energy_is_that_of_the_power_over_the_epoch(collected):
    _, rows, energies = collected()
    row, energy = rows[1], energies[1]
    start_s, end_s = 20.625, 36.25
    mean_w = power_w((start_s + end_s) / 2)
    assert float(row["energy_wh"]) == pytest.approx(mean_w * 15.625 / 3600)
    assert float(row["power_mean_w"]) == pytest.approx(mean_w)
    picked = [21.25 + 1.25 * n for n in range(13)]  # readings nearest to a whole second
    wanted_j = sum(power_w(t) * 1.25 for t in picked[1:] if t <= end_s)
    assert float(row["energy_paper_wh"]) == pytest.approx(wanted_j / 3600)
    assert float(row["sampler_period_s"]) == pytest.approx(1.25)
    assert (row["power_scope"], row["energy_method"]) == ("module", "trapezoid")
    names = columns.names(columns.ENERGY_COLUMNS)
    assert [energy[name] for name in names] == [row[name] for name in names]


def test_the_analysis_reads_them(collected):
    source, *_ = collected()
    table = summarise_runs(read_epochs([f"results/runs/{source['run']}/epochs.csv"]), {})
    later = table[(table.epoch_set == "1+") & (table.statistic == "mean")].iloc[0]
    assert (later.stall_s, later.n_epochs) == (5.0, 2)
    assert math.isnan(later.wait_s)


# -- what is known against an imported epoch ------------------------------------------------------


def test_without_the_monitor_there_is_no_energy(collected):
    _, rows, energies = collected("tegrastats")
    assert energies == []
    assert rows[1]["flags"] == "imported sampler_lost"
    assert {rows[1][name] for name in columns.names(columns.ENERGY_COLUMNS)} == {""}


def test_epochs_that_the_monitor_did_not_see_have_nothing_of_it(logs, take, imported):
    """It told something before them, which is not theirs."""
    run = logs()
    for kind in ("tegrastats", "ram_stats", "io_stats"):
        kept = run.path(kind).read_text("utf-8").split("\n")[:20]  # until 22.5 s
        run.path(kind).write_text("\n".join(kept) + "\n", "utf-8")
    take()
    rows = imported()[1]
    assert "sampler_lost" in rows[2]["flags"]
    assert {rows[2][k] for k in ("cpu_util_pct", "read_iops", "ram_used_mib")} == {""}
    assert "power_end_held" in rows[1]["flags"]


def test_a_power_that_does_not_move_voids_the_energy(collected):
    _, rows, energies = collected(
        kind="tegrastats",
        edit=lambda text, run: re.sub(r"9000,[0-9.]+", "9000,9000.0", text),
        fetch_s=8.0,
    )
    assert "power_stuck" in rows[0]["flags"]
    assert rows[0]["energy_wh"] == energies[0]["energy_paper_wh"] == ""
    assert rows[0]["power_scope"] == "module"


def test_the_total_of_an_agx_orin_is_not_taken(logs, take, imported, checkout):
    checkout.edit("devices/agx.yaml", "agx_xavier", "agx_orin")
    logs()
    lines = take()
    assert imported()[2] == []
    assert "one rail of an AGX Orin" in lines[-1]


# -- what an imported run is, and that it is never one of our own ---------------------------------


def test_id_and_factors_are_those_of_the_scripts_and_of_no_run_of_our_own(logs, take, imported):
    run = logs("io_stats", workers=2, prefetch=4)
    take(dvfs="on", power_mode="a")
    source = imported()[0]
    factors = source["factors"]
    assert source["run"] == run_id(factors, canonical_json(factors))
    assert re.fullmatch(r"jetson-agx-d1-resnet-ssd-w2-bs10000-a-p1-[0-9a-f]{8}", source["run"])
    own = {k: v for k, v in factors.items() if k != "imported"}
    assert run_id(own, canonical_json(own)) != source["run"]
    told = {
        **{"setup": "sigmetrics2023", "backend": "jetson", "dataset_source": "official"},
        **{"num_workers": 2, "prefetch_factor": 4, "dvfs": "on", "power_mode": "a"},
        **{"cache_policy": "kept", "epochs_per_job": 3, "torch_threads": 0},
        **{"imported": "scripts-2023", "power_mode_settings": {"cores": 4}},
    }
    assert {k: factors[k] for k in told} == told
    assert factors["recipe"]["name"] == "cifar10"
    options = {**OPTIONS, "dvfs": "on", "power_mode": "a", "setup": "sigmetrics2023"}
    assert source["options"] == options
    assert source["warnings"] == ["there is no io_stats"]
    assert set(map(len, source["files"].values())) == {64}
    assert run.path("fetch").name in source["files"]


def test_the_same_logs_again_change_nothing_and_others_never_take_their_place(logs, take, imported):
    run = logs(workers=0)
    take()
    before = imported()
    assert before[0]["factors"]["prefetch_factor"] is None  # without workers
    take()
    assert imported() == before
    run.edit("tegrastats", "2022-05-11", "2022-05-12")
    with pytest.raises(RecordError, match="was imported from other logs"):
        take()
    assert imported() == before


@pytest.mark.parametrize(
    ("changes", "found", "allowed"),
    [
        ({"device": "nx"}, "--device is 'nx'", "allowed: agx, host"),
        ({"device": "host"}, "--device is 'host'", "a device with backend jetson"),
        ({"instance": "d9"}, "--instance is 'd9'", "d1, d2"),
        ({"storage": "hdd"}, "--storage is 'hdd'", "ssd, sd"),
        ({"power_mode": "z"}, "--power-mode is 'z'", "g, a"),
        ({"model": "own"}, "--model is 'own'", "lenet, resnet"),
        ({"setup": "other"}, "--setup is 'other'", "own, sigmetrics2023, hipcw2021"),
        ({"batch_size": 0}, "batch_size is 0", ">= 1"),
    ],
)
def test_what_config_does_not_have_is_refused(changes, found, allowed, logs, take):
    logs()
    with pytest.raises(ConfigError) as told:
        take(**changes)
    first, second = str(told.value).split("\n")
    assert found in first
    assert allowed in second


# -- in the run table: drawn and counted, never measured ------------------------------------------


@pytest.mark.parametrize("text", ["[]", "1.5", "[" * 5000])
def test_a_damaged_source_is_named_with_what_to_do(tmp_path, text):
    path = tmp_path / "measured/a-run/source.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    with pytest.raises(RecordError, match=r"source\.json(.|\n)*import its logs again"):
        imported_runs(tmp_path)
