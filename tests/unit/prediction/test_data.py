"""Power modes, observed epochs, mode tables, workloads: the data that models learn from."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.prediction.data.mode_tables import MHZ, UNKNOWN, observations_of
from epochwatt.prediction.data.modes import NO_LIMIT, Mode, PredictionError, as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.data.required_runs import _mode_numbers
from epochwatt.prediction.data.workloads import read_workloads
from epochwatt.study.settings import load_settings
from epochwatt.sweeps.mode_table import ModeTable
from tests.unit.prediction.sweeps import GRID, limited, planted

# -- modes -----------------------------------------------------------------------------------------


def test_agx_xavier_has_as_many_modes_as_the_paper_says(agx):
    modes = agx.all_modes()
    assert modes.shape == (29_232, 6)
    assert len(np.unique(modes, axis=0)) == 29_232


@pytest.mark.parametrize(
    ("mode", "error", "named"),
    [
        (
            Mode(8, 2265, 1000, 1600),
            ConfigError,
            "gpu_mhz: 1000 MHz is not a step.*905.25 and 1032.75",
        ),
        (Mode(9, 2265, 1377, 1600), PredictionError, "found: 9 cores\n  allowed: 1 to 8"),
        (Mode(2.5, 2265, 1377, 1600), PredictionError, "found: 2.5 cores"),
    ],
)
def test_mode_outside_the_tables_is_refused(agx, mode, error, named):
    assert issubclass(error, EpochwattError)
    with pytest.raises(error, match="(?s)" + named):
        agx.resolve(mode)


@pytest.mark.parametrize(
    ("modes", "problem"),
    [
        *(
            ([[8, 2265, 1377]], "shape"),
            ([1, 2, 3, 4], "shape"),
            ([[8, 1, 1, 1, 1, 1, 1]], "shape"),
        ),
        *(([[8, 2265, bad, 2133]], "numbers above zero") for bad in (0, -1, np.nan, np.inf)),
    ],
)
def test_modes_have_four_to_six_numbers_above_zero(modes, problem):
    with pytest.raises(PredictionError, match=problem):
        as_rows(modes)


def test_a_mode_of_four_numbers_has_the_whole_gpu_on_and_no_limit():
    """As every mode had before there was a fifth number, and a sixth."""
    assert as_rows([[8, 2265, 1377, 2133]]).tolist() == [[8, 2265, 1377, 2133, 1, NO_LIMIT]]
    assert as_rows([[8, 2265, 1377, 2133, 0.5]]).tolist() == [[8, 2265, 1377, 2133, 0.5, NO_LIMIT]]
    assert str(Mode(2, 1190, 522, 1065, 0.5)).endswith("memory 1065 MHz, 50 % of the GPU on")


# -- observations ----------------------------------------------------------------------------------


def test_power_of_a_mode_is_that_of_its_mean_energy(named):
    """Epochs of 100 s at 36 W and 300 s at 12 W: 1 Wh each, so 1 Wh in 200 s, which is 18 W."""
    of = observations_from_rows("w", [named["g"]] * 2, [100, 300], [36, 12])
    assert of.energy_wh.tolist() == [1, 1]
    mean = of.per_mode()
    assert (mean.time_s[0], mean.power_w[0]) == (200, pytest.approx(18))


def test_missing_energy_is_named(named):
    of = observations_from_rows("lenet", [named["g"], named["a"]], [1, 2], [20, float("nan")])
    with pytest.raises(PredictionError, match=r"lenet: no energy.*in 1 of 2 modes.*4 cores"):
        of.need_energy()


@pytest.mark.parametrize(("time_s", "power_w"), [(0, 20), (-1, 20), (float("nan"), 20), (1, 0)])
def test_times_and_powers_are_above_zero(named, time_s, power_w):
    with pytest.raises(PredictionError, match="numbers above zero"):
        observations_from_rows("w", [named["g"]], [time_s], [power_w])


# -- mode tables -----------------------------------------------------------------------------------


def changed(table, place, **values):
    rows = list(table.rows)
    rows[place] = replace(rows[place], **values)
    return ModeTable(table.key, tuple(rows))


def test_repeats_of_a_mode_are_one_row_with_the_energy_of_their_mean():
    table = planted(GRID[:6], repeats=2)
    table = changed(table, 0, time_s=10.0, power_w=5.0)
    table = changed(table, 1, time_s=30.0, power_w=9.0)
    rows = observations_of(table)
    assert len(rows.modes) == 6
    assert (rows.time_s[0], rows.power_w[0]) == (20.0, (50 + 270) / 40)
    assert rows.energy_wh[0] == pytest.approx((50 + 270) / 2 / 3600)
    assert rows.epoch.tolist() == [1] * 6


def test_invalid_rows_and_repeats_without_power_are_left_out():
    table = changed(planted(GRID[:6], repeats=2), 1, power_w=None, power_scope="")
    assert observations_of(table).power_w[0] == table.rows[0].power_w
    assert len(observations_of(changed(planted(GRID[:6]), 2, valid=False)).modes) == 5
    none = ModeTable(table.key, tuple(replace(row, valid=False) for row in table.rows))
    with pytest.raises(PredictionError, match="without a valid row"):
        observations_of(none)


def test_parts_that_are_not_known_are_the_same_constant_in_all_modes():
    rows = observations_of(limited())
    assert len(np.unique(rows.modes[:, :5], axis=0)) == 1
    assert rows.modes[0].tolist() == [*UNKNOWN[:5], 100.0]
    assert rows.modes[0, 2] == MHZ
    assert (observations_of(planted()).modes[:, 5] == NO_LIMIT).all()


def test_a_part_that_some_rows_know_is_refused():
    with pytest.raises(PredictionError, match="power_limit_w is known of 1 of 6 valid rows"):
        observations_of(changed(planted(GRID[:6]), 3, power_limit_w=100.0))


# -- required runs ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(request):
    """Both papers' grids on the twin."""
    return load_settings({"studies": ["simulated"]}, request.config.rootpath).table


def test_a_mode_that_gates_half_of_the_gpu_says_so():
    """A named mode of a board whose numbers the device file states."""
    clocks = {"cores": 2, "cpu_mhz": 1200, "gpu_mhz": 520, "emc_mhz": 1065}
    named = {"nvpmodel": "MODE_10W", "gpu_share": 0.5, **clocks}
    for settings, share in ((clocks, 1), (named, 0.5)):
        run = SimpleNamespace(factors={"power_mode_settings": settings})
        assert _mode_numbers(run) == [2, 1200, 520, 1065, share]


# -- workloads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epoch", "said"), [("2", "5 of 6"), ("0", "")])
def test_energy_that_is_missing_in_part_is_as_missing(planted, edit_rows, epoch, said):
    """An epoch after the first counts, the first does not."""

    def without_energy(row):
        if row["epoch"] == epoch:
            row |= {"energy_paper_wh": "", "power_scope": ""}

    paths, modes = planted(("lenet",), "ab")
    edit_rows(paths[1], without_energy)
    (lenet,) = read_workloads(paths, modes)
    expected = f"energy was measured in {said} epochs after the first" if said else ""
    assert lenet.no_energy == expected
    assert np.isnan(lenet.observed.after_first().power_w).all() == bool(said)


def test_invalid_epochs_and_energies_of_several_scopes_are_left_out(
    planted, write_epochs, tmp_path
):
    paths, modes = planted(("lenet",), "a", energy=False)
    (none,) = read_workloads(paths, modes)
    assert none.no_energy == "energy was not measured"
    factors = {**none.factors, "power_mode": "a"}
    epochs = [{"energy_paper_wh": 1.0, "power_scope": scope} for scope in ("module", "socket")]
    path = write_epochs("lenet-a", factors, epochs[0], {"valid": False}, epochs[1], root=tmp_path)
    (both,) = read_workloads([path], modes)
    assert both.observed.epoch.tolist() == [0, 2]
    assert both.no_energy == "energy was measured by several power scopes: module, socket"
    assert np.isnan(both.observed.power_w).all()
