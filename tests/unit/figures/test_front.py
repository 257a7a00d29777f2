"""The Pareto front of `epochwatt recommend`: its title, legend, ticks and table."""

import numpy as np
import pytest

from epochwatt import columns
from epochwatt.board.device.board_files import Tables
from epochwatt.figures import front
from epochwatt.prediction.data.modes import Board, Mode, as_rows
from epochwatt.prediction.models.features import POWER, TIME
from epochwatt.prediction.models.linear_model import LinearModel
from epochwatt.prediction.models.model_store import FittedWorkload
from epochwatt.prediction.recommend.board_tables import BoardFiles
from epochwatt.prediction.recommend.command import Advice, Request
from epochwatt.prediction.recommend.recommend import recommend
from epochwatt.prediction.recommend.text import write_front
from epochwatt.prediction.registry import load_method
from epochwatt.study.config import Device

CLOCKS = {"a": (500, 400, 800), "b": (1000, 400, 800), "c": (500, 800, 800), "d": (1000, 800, 1600)}
MHZ = ((500, 1000), (400, 800), (800, 1600))


WORKLOAD = {
    **{"setup": "own", "backend": "twin", "device": "some", "instance": "d1", "model": "lenet"},
    **{"storage": "ssd", "num_workers": 4, "batch_size": 16},
}


@pytest.fixture
def advice():
    """Return a function: budgets -> the advice for a small board, whose modes have names."""
    scales = np.array([1000, 1e6, 1e6], int)
    tables = Tables(*(tuple(m * s for m in of) for of, s in zip(MHZ, scales.tolist(), strict=True)))
    board = Board("small", 2, tables)
    modes = as_rows([(2, *clocks) for clocks in CLOCKS.values()])

    def model(target, terms, coefficients):
        draws = np.array(coefficients) * np.linspace(0.9, 1.1, 21)[:, None]
        told = (target, terms, np.array(coefficients), 5, modes)
        return LinearModel(*told, draws=draws, spread=np.zeros(len(draws)))

    time = model("time_s", TIME, (50.0, 60.0, 60.0, 50.0, 0.0))
    power = model("power_w", POWER, (4.0, 1.0, 0.5, 0.1, 2.0, 4.0))
    device = Device(
        title="Some board", backends=["twin"], instances=["d1"], storage={"ssd": {"title": "",
        "root": ""}}, dvfs=["off"], power_modes={name: dict(zip(
        ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz"), (2, *of), strict=True))
        for name, of in CLOCKS.items()},
    )  # fmt: skip
    runs = tuple(f"twin-some-d1-lenet-ssd-w4-bs16-{name}-p1-01234567" for name in CLOCKS)

    def call(**budgets):
        request = Request("twin", "some", "lenet", "time", budgets)
        recommended = recommend(board, time, power, "time", budgets)
        files = BoardFiles(board, None, "nowhere")
        fitted = FittedWorkload(WORKLOAD, runs, time, power)
        method = load_method("physical")
        profiled = tuple(Mode(*row) for row in modes.tolist())
        return Advice(request, device, method, fitted, (), files, profiled, recommended)

    return call


def test_title_says_simulated(pytestconfig, tmp_path, advice):
    for name in ("config", "workflow"):
        (tmp_path / name).symlink_to(pytestconfig.rootpath / name)
    answer = advice()
    paths = front.draw_front(answer, write_front(answer, tmp_path), tmp_path)
    svg = (tmp_path / paths[0]).read_text()
    assert ">SIMULATED, not measured: power modes of Some board d1 for lenet<" in svg


def test_table_has_what_was_observed_beside_what_is_expected(tmp_path, advice, write_epochs):
    answer = advice()
    about = {"dataset": "mnist", "dataset_source": "digits", "power_mode": "b"} | WORKLOAD
    later = {"e2e_s": 123.456789, "energy_wh": 0.25, "energy_paper_wh": 0.2}
    later |= {"power_scope": "module"}
    factors = columns.with_defaults(about)
    write_epochs(answer.fitted.runs[1], factors, {}, later, later, root=tmp_path)
    rows = write_front(answer, tmp_path)
    profiled = {tuple(row[n] for n in ("cpu_mhz", "gpu_mhz", "emc_mhz")): row
                for row in rows if row["what"] == "profiled"}  # fmt: skip
    seen = profiled[CLOCKS["b"]]
    assert (seen["observed_epoch_s"], seen["observed_energy_wh"]) == (123.46, 0.25)
    assert seen["observed_power_w"] == pytest.approx(3600 * 0.25 / 123.456789, rel=1e-4)
    assert seen["epoch_s"] != 123.46
    assert profiled[CLOCKS["a"]]["observed_epoch_s"] == ""
    assert all(isinstance(row["cores"], int) for row in rows)
