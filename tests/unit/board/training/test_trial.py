"""What the measuring interpreter tells of itself."""

import json
import types

import pytest

from epochwatt.board.training import trial


@pytest.fixture
def modules(monkeypatch):
    """Let the libraries be these: a version, or what importing raises."""

    def be(**found):
        def import_module(name):
            version = found.get(name, ImportError("No module named " + name))
            if isinstance(version, Exception):
                raise version
            return types.SimpleNamespace(__version__=version)

        monkeypatch.setattr(trial.importlib, "import_module", import_module)

    return be


def test_a_gpu_that_cannot_be_used_is_no_gpu(modules, monkeypatch):
    def gpu():
        raise RuntimeError("no kernel image is available")

    modules(torch="1.10")
    monkeypatch.setattr(trial, "_gpu", gpu)
    about = trial.libraries()
    assert about["gpu"] is None
    assert "no kernel image" in about["errors"]["gpu"]


def test_the_sampler_fills_a_folder(tmp_path, capsys):
    trial.main(["sampler", str(tmp_path), str(tmp_path), "/", "none", "0.1"])
    told = json.loads(capsys.readouterr().out)
    assert told["lost"] is False
    assert (tmp_path / "samples-host.csv").exists()
