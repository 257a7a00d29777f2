"""All checks on the sweeps that the project holds, beside its simulated boards."""

import csv
from pathlib import Path

import numpy as np
import pytest
from panels import assert_readable, drawn_texts

from epochwatt.counting.count_workload import write_workload
from epochwatt.external import check_external, energy_curves, scaling
from epochwatt.external.check import AGREES, DIFFERS, NOT_AVAILABLE, SIMULATED
from epochwatt.external.inputs import Inputs, NotHereError
from epochwatt.external.workloads import simulated_workloads
from epochwatt.figures.external import plot
from epochwatt.pages.show_external import write_external
from epochwatt.twin.inputs.boards import load_boards
from epochwatt.twin.inputs.power_modes import load_twin_with_modes

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def workloads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workloads")
    for model in ("lenet", "resnet"):
        write_workload({"model": model}, str(folder / f"{model}.json"))
    return [str(folder / f"{model}.json") for model in ("lenet", "resnet")]


@pytest.fixture(scope="module")
def checks(workloads, tmp_path_factory):
    """The table and its page as the checkout makes them, without anybody's folder."""
    folder = tmp_path_factory.mktemp("external")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EPOCHWATT_PUBLIC_DATA", raising=False)
        table = str(folder / "external.csv")
        curves = str(folder / "external_curves.csv")
        made = check_external.check_external(workloads, table, curves, REPOSITORY)
    plot(curves, str(REPOSITORY / "config/paper.mplstyle"), str(folder / "energy_curves"))
    write_external(table, str(folder / "energy_curves.svg"), str(folder / "external.html"))
    return folder, made


def test_every_part_has_a_row_and_what_is_not_here_says_so(checks):
    _, made = checks
    missing = {check.source for check in made if check.verdict == NOT_AVAILABLE}
    assert len(missing) == 6
    assert all("EPOCHWATT_PUBLIC_DATA" in c.note for c in made if c.verdict == NOT_AVAILABLE)
    assert {check.question for check in made} == {part.question for part in check_external.PARTS}
    shipped = {check.licence for check in made if check.verdict != NOT_AVAILABLE}
    assert shipped == {"Apache-2.0", "MIT", "BSD-3-Clause"}


def test_the_u_of_a_real_gpu_and_of_none_simulated(checks):
    _, made = checks
    by_subject = {check.subject: check for check in made}
    subject = "tx2 resnet50: energy of the GPU's rail at 114.75, 726.75 and 1300.5 MHz"
    assert by_subject[subject].observed == "266 / 149 / 243"
    assert by_subject[subject].verdict == AGREES
    best = by_subject["tx2 resnet50: clock of the least energy, GPU alone"]
    assert (best.expected, best.provenance, best.verdict) == ("0.559", SIMULATED, DIFFERS)


def test_training_takes_least_energy_below_the_highest_limit(checks):
    _, made = checks
    limits = [check for check in made if check.question == check_external.LIMIT]
    assert len(limits) == 12  # six networks on two GPUs
    assert {check.verdict for check in limits} == {AGREES}
    assert all(check.deviation_pct < -35 for check in limits)


def test_laws_of_clocks_have_the_errors_that_the_readmes_tell(checks):
    _, made = checks
    laws = {c.subject: c for c in made if c.question == check_external.LAW}
    assert laws["tx2: median error of time"].observed == "2.68"
    assert laws["A100: median error of time"].observed == "1.54"
    powers = {c.subject: c for c in made if c.question == check_external.POWER_LAW}
    assert {powers[f"{gpu}: median error of power"].verdict for gpu in ("tx2", "A100")} == {AGREES}


def test_simulated_values_are_marked_and_never_stand_alone(checks):
    _, made = checks
    for check in made:
        if check.question == check_external.SCALING and check.verdict != NOT_AVAILABLE:
            assert check.provenance == SIMULATED
            assert check.expected


def test_page_has_every_check(checks):
    folder, made = checks
    page = (folder / "external.html").read_text("utf-8")
    with (folder / "external.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == len(made)
    assert page.count("<tr>") - page.count("<th>subject</th>") == len(rows)
    assert f"<p>{len(rows)} checks, " in page
    assert "licence: Apache-2.0" in page
    assert page.count("<svg") == page.count("</svg>") == 1


def test_curves_are_drawn_over_their_own_least(checks):
    folder, _ = checks
    with (folder / "external_curves.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    by_curve = {}
    for row in rows:
        by_curve.setdefault((row["panel"], row["curve"]), []).append(row)
    assert all(min(float(r["energy"]) for r in own) == 1 for own in by_curve.values())
    assert all(float(own[-1]["setting"]) == 1 for own in by_curve.values())
    panels = [panel for panel, _ in by_curve]
    assert [panels.count(name) for name in energy_curves.PANELS] == [2 + 12, 12, 12]
    drawn = (folder / "energy_curves.svg").read_text("utf-8")
    assert "graphics cards: measured only" in drawn
    assert (folder / "energy_curves.csv").read_text("utf-8").count("\n") == len(rows) + 1
    assert "Simulated" in (folder / "energy_curves.txt").read_text("utf-8")


def test_exponents_are_those_of_a_power_law():
    modes = np.random.default_rng(1).uniform(1, 9, (50, 4))
    values = 3 * modes[:, 0] ** -0.5 * modes[:, 2] ** -1 * modes[:, 3] ** 0.25
    assert scaling.exponents(modes, values) == pytest.approx([-0.5, 0, -1, 0.25])


def test_a_sum_of_terms_by_clock_has_no_distance_and_noise_has():
    random = np.random.default_rng(2)
    modes = random.uniform((1, 300, 300, 300), (8, 2000, 1300, 1600), (200, 4))
    cores, cpu, gpu, emc = modes.T
    times = 0.1 + 50 / gpu + 20 / emc + 30 / cpu + 90 / (cpu * cores)
    assert scaling.law_error_pct(modes, times) < 1e-6
    noisy = times * np.exp(0.05 * random.normal(size=len(times)))
    assert 2 < scaling.law_error_pct(modes, noisy) < 5


def test_modes_are_carried_over_by_their_share_of_the_highest_clocks():
    board = load_boards(REPOSITORY / "config/twin")["agx"]
    rows = np.array([(4, 2000, 1300, 1800), (2, 1000, 650, 900), (1, 20, 13, 1800)], float)
    moved = scaling.carried_over(rows, board)
    top = (8, board.cpu_mhz[1], board.gpu_mhz[1], board.emc_mhz[1])
    assert moved[0].tolist() == list(top)
    assert moved[1] == pytest.approx(np.array(top) / 2)
    assert moved[2].tolist() == [2, board.cpu_mhz[0], board.gpu_mhz[0], board.emc_mhz[1]]


def test_curve_knows_its_least_and_both_ends():
    curve = energy_curves.curve_of(np.array([300.0, 100, 200]), np.array([3.0, 4, 2]))
    assert curve == (200 / 300, 2.0, 1.5)


def test_workloads_are_the_counted_networks_with_and_without_workers(workloads):
    twin = load_twin_with_modes(workloads, REPOSITORY)
    named = [(d, f["model"], f["num_workers"]) for d, f in simulated_workloads(twin, ("nx",))]
    models = ("lenet", "resnet")
    assert named == [("nx", model, workers) for model in models for workers in (0, 4)]


def test_a_sweep_without_licence_is_asked_for_by_name(workloads, tmp_path):
    inputs = Inputs(REPOSITORY, tmp_path, load_twin_with_modes(workloads, REPOSITORY))
    with pytest.raises(NotHereError, match="blackjack2015/dlbench_dvfs"):
        inputs.tables("dlbench-caffe")


def test_no_curve_leaves_its_field(tmp_path):
    table = tmp_path / "curves.csv"
    rows = ["panel,curve,provenance,setting,energy"]
    rows += [f"whole module,agx,simulated,{x},{9 - 8 * x}" for x in (0, 1)]
    table.write_text("\n".join(rows) + "\n")
    with drawn_texts() as texts:
        plot(str(table), str(REPOSITORY / "config/paper.mplstyle"), str(tmp_path / "drawn"))
    figure = next(iter(texts))
    assert_readable({"curves": texts[figure]})
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low < 1 < 9 < high
