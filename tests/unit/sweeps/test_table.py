"""The sweep table: ids, grids of the configuration, chunks, and what is refused how."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from epochwatt.errors import ConfigError
from epochwatt.sweeps.discard import forget_lost_modes
from epochwatt.sweeps.table import sweep_names

LENET = {"model": "lenet"}
REPOSITORY = Path(__file__).resolve().parents[3]


def test_what_is_asked_for_by_name_is_swept_and_an_unknown_name_refused(sweeps):
    sweeps.sweep()
    assert sweeps.table([]).sweeps == {}
    assert list(sweeps.table("one").sweeps) == ["one"]
    assert sweep_names() == ["one"]
    with pytest.raises(ConfigError) as error:
        sweeps.table(["two"])
    assert str(error.value).splitlines() == [
        "config/config.yaml: sweeps names 'two'",
        "  allowed: config/sweeps.yaml has: one",
    ]


def test_a_simulated_sweep_does_not_depend_on_the_modes_of_the_device_s_file(sweeps, bases):
    """Else an owner who names the modes of the board at hand could not start the workflow."""
    before = sweeps.sweep(base=bases["twin"])
    path = sweeps.checkout.path / "config/devices/orin.yaml"
    path.write_text(path.read_text("utf-8").replace("cpu_mhz: 2200", "cpu_mhz: 1344"), "utf-8")
    assert sweeps.sweep(base=bases["twin"]).id == before.id
    own = {"power_modes": {"15W": {"nvpmodel": "MODE_15W"}}}
    sweeps.write("devices/orin.yaml", yaml.safe_load(path.read_text()) | own)
    assert sweeps.sweep(base=bases["twin"]) == before


def test_names_of_files_and_of_public_sweeps_are_refused(sweeps):
    with pytest.raises(ConfigError, match="no name of a sweep"):
        sweeps.sweep("my_Sweep")
    with pytest.raises(ConfigError, match="'scores' cannot be the name of a sweep"):
        sweeps.sweep("scores")
    sweeps.write("sweeps/registry.yaml", (REPOSITORY / "config/sweeps/registry.yaml").read_text())
    with pytest.raises(ConfigError, match="'zeus-v100' is the name of a public sweep"):
        sweeps.sweep("zeus-v100")


def test_the_id_has_all_that_would_cause_a_new_measurement_but_not_the_modes(sweeps):
    first = sweeps.sweep()
    assert re.fullmatch(r"host-local-lenet-disk-w0-bs16-sweep-p1-[0-9a-f]{8}", first.id)
    larger = sweeps.sweep(grid={"modes": [{"cores": 1}], "random": 1}, chunk=3, title="t")
    assert larger.id == first.id
    assert sweeps.sweep(minibatches=50).id != first.id
    assert sweeps.sweep(procedure={"idle_s": 1}).id != first.id
    assert sweeps.sweep(workload={"model": "lenet", "num_workers": 0, "seed": 1}).id != first.id


def test_factors_are_complete_and_name_no_power_mode(sweeps, bases):
    sweep = sweeps.sweep()
    factors = sweep.run.factors
    assert (factors["power_mode"], factors["dvfs"], factors["torch_threads"]) == ("sweep", "on", 0)
    assert json.loads(sweep.run.canonical)["minibatches"] == factors["minibatches"] == 40
    words = shlex.split(sweep.command)
    assert words[:5] == ["python3", "-m", "epochwatt.board.training.sweep", "--data-root", "data"]
    assert json.loads(words[6])["backend"] == "host"
    simulated = sweeps.sweep(base=bases["twin"], grid="powertrain-orin")
    assert simulated.run.factors["dvfs"] == "off"
    assert "power_mode_settings" not in simulated.run.factors
    assert len(simulated.modes) == 4368
    assert simulated.chunks == []
    facts = simulated.facts
    assert (facts["provenance"], facts["device"]) == ("simulated", "agx_orin")


def test_modes_are_measured_in_chunks_and_each_once(sweeps, orin, bases):
    sweep = orin.sweep(base=bases["board"], chunk=20, grid={"name": "fulcrum-orin", "random": 50})
    assert sweep.chunks == [(0, 19), (20, 39), (40, 49)]
    assert sweep.receipts[1] == f"results/sweeps/{sweep.id}/{sweep.digest}/20-39.json"
    assert len(set(sweep.modes)) == 50
    assert sweep.run.factors["backend"] == "fake"
    assert sweep.facts["provenance"] == "fake"


def test_the_clocks_of_the_board_at_hand_count(at_hand, bases):
    assert len(at_hand("jp5").sweep(base=bases["board"], grid="powertrain-orin").modes) == 4368
    newer = at_hand("jp6")
    with pytest.raises(ConfigError, match="gives 3,696 modes on the clocks of this board") as error:
        newer.sweep(base=bases["board"], grid="powertrain-orin")
    assert error.value.where == "config/sweeps.yaml: one.grid"
    assert "any_size: true" in error.value.do
    sweep = newer.sweep(base=bases["board"], grid={"name": "powertrain-orin", "any_size": True})
    assert min(mode.gpu_mhz for mode in sweep.modes) == 306


def test_a_sweep_of_another_machine_is_left_alone_unless_it_is_measured(
    sweeps, bases, measure_mode
):
    assert sweeps.sweep(base=bases["board"]) is None
    ((sweep, reason),) = sweeps.table(["one"]).elsewhere
    assert "wants a Jetson AGX Orin" in reason
    measure_mode(sweep, {"cores": 4, "gpu_mhz": 318.75})
    there = sweeps.table(["one"]).sweeps["one"]
    assert there.chunks == []
    assert there.facts["modes"] == []


@pytest.mark.parametrize(
    ("base", "keys", "text"),
    [
        ("twin", {"grid": "fulcrum"}, "sweeps.yaml: one.grid: unknown grid 'fulcrum'"),
        ("host", {"workload": {"model": "resnet"}}, "one.workload.model is 'resnet'"),
        ("host", {"workload": LENET | {"power_mode": "asis"}}, "unknown key 'power_mode' in one."),
        ("host", {"workload": LENET | {"batch_size": [16, 32]}}, "one value: a sweep is of one"),
        ("host", {"workload": LENET | {"batch_size": 0}}, "one.workload.batch_size is 0"),
        ("host", {"procedure": {"idle_min": 1}}, "one.procedure: unknown number 'idle_min'"),
        ("host", {"device": "mars"}, "one.device is 'mars'"),
        ("twin", {"grid": {"parts": {"gpu_mhz": [1000]}}}, "gpu_mhz: 1000 MHz is not a step"),
        ("twin", {"grid": {"modes": [{"cores": 4, "gpu_mhz": 1300}]}}, "leave a part as it is"),
        ("twin", {"grid": {"name": "fulcrum-orin", "random": 442}}, "at most 441 modes"),
        ("twin", {"ceilings": True}, "nothing is measured on the twin"),
        ("host", {"grid": {"parts": {"gpu_mhz": [1000]}}}, "cannot be set on the machine at hand"),
        ("host", {"grid": {"parts": {"volts": [1]}}}, "volts"),
        ("host", {"grid": {"name": "all", "parts": {"cores": [1]}}}, "one of name, parts and mode"),
        ("host", {"grid": {"modes": [{"cores": 0}]}}, "cores is 0"),
    ],
)
def test_what_cannot_be_is_refused_with_file_key_and_what_is_allowed(
    sweeps, bases, base, keys, text
):
    with pytest.raises(ConfigError) as error:
        sweeps.sweep(base=bases[base], **keys)
    assert text in str(error.value)
    assert "config/sweeps.yaml" in str(error.value)


def test_a_receipt_of_a_lost_mode_is_forgotten(sweeps, measure_mode, checkout):
    sweep = sweeps.sweep()
    folder = measure_mode(sweep, {"cores": 1})
    (receipt,) = (checkout.path / path for path in sweep.receipts)
    receipt.parent.mkdir(parents=True)
    receipt.touch()
    assert forget_lost_modes([sweep]) == []
    folder.discard({"cores": 1})
    (line,) = forget_lost_modes([sweep])
    assert line == f"one: mode-c1-x-x-x gone from measured/{sweep.id}, measured again"
    assert not receipt.exists()
