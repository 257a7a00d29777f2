"""The published numbers and the simulated boards, as the checkout has them."""

import json
from dataclasses import replace

import pytest
from made_up import FACTORS, assumed

from epochwatt.counting.count_workload import network_factors, write_workload
from epochwatt.study.settings import load_settings
from epochwatt.twin.calibrate_twin import MODELS, load_evidence
from epochwatt.twin.epoch import Setting
from epochwatt.twin.predicted import DATASETS


@pytest.fixture(scope="session")
def workloads(network_counts):
    """Paths of the counts of the networks that the papers print numbers of."""
    return [network_counts(model) for model in MODELS]


@pytest.fixture(scope="session")
def inferences(network_counts):
    """Paths of the counts of the inference of two of them."""
    return [network_counts(model, "infer") for model in ("lenet", "mobilenet")]


@pytest.fixture(scope="session")
def evidence(workloads, request):
    """What a calibration of the committed configuration reads."""
    return load_evidence(workloads, request.config.rootpath)


@pytest.fixture(scope="session")
def only():
    """Return a function that gives a twin of which only some parameters are fitted."""

    def call(twin, *names):
        known = twin.parameters
        fixed = [name for name in known.fitted if name not in names]
        return replace(twin, parameters=assumed(known, fixed))

    return call


@pytest.fixture(scope="session")
def twin(evidence):
    """The simulated boards, with the papers' networks counted anew."""
    return evidence.twin


@pytest.fixture(scope="session")
def modes(evidence):
    """The boards' power modes."""
    return evidence.twin.modes


@pytest.fixture(scope="session")
def quiet(twin):
    """The parameters without any spread between mini-batches, epochs and boards."""
    return twin.parameters.moved({n: 0.0 for n in twin.parameters if n.startswith("noise_")})


@pytest.fixture(scope="session")
def setting(twin, modes):
    """Return a function that makes a configuration: the papers' default, but for what is told."""

    def make(device="agx", model="lenet", mode=None, clocks=None, **changes):
        own = modes[device]
        told = {"medium": "ssd", "batch_size": 16, "num_workers": 4, **changes}
        return Setting(
            board=twin.boards[device],
            work=twin.works[model],
            samples=twin.samples[DATASETS[model]],
            clocks=own[mode or next(iter(own))]._replace(**clocks or {}),
            **told,
        )

    return make


@pytest.fixture(scope="session")
def factors_of(modes):
    """Return a function that makes a run's factors: LeNet on AGX Xavier, but for what is told."""

    def make(device="agx", model="lenet", mode=None, **changes):
        mode = mode or next(iter(modes[device]))
        return {
            **FACTORS,
            **{"device": device, "model": model, "dataset": DATASETS[model]},
            **{"power_mode": mode, "power_mode_settings": modes[device][mode]._asdict()},
            **changes,
        }

    return make


@pytest.fixture(scope="session")
def lenet_counts(tmp_path_factory, request):
    """Path of the counts of LeNet-5 as the workflow makes them."""
    path = tmp_path_factory.mktemp("workloads") / "lenet.json"
    networks = load_settings(root=request.config.rootpath).workloads
    write_workload(network_factors("lenet", networks), str(path))
    return path


@pytest.fixture
def words(tmp_path, lenet_counts, request):
    """Return a function that gives the command of a run, which is a LeNet of the paper's."""
    root = request.config.rootpath
    settings = load_settings({"studies": "simulated"}, root)
    run = next(run for run in settings.table.runs.values() if run.factors["model"] == "lenet")

    def command(epochs=2):
        options = {
            "--factors": run.canonical,
            "--epochs": epochs,
            "--workload": lenet_counts,
            "--flag-effects": json.dumps(settings.flag_effects),
            "--config": root / "config/twin",
            "--output": tmp_path / run.id,
            "--tables": tmp_path / "tables",
        }
        return [run.id, *(str(word) for option in options.items() for word in option)]

    return command
