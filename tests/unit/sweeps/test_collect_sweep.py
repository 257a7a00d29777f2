"""From records of modes to a table: means, flags, what is not valid, what is damaged."""

from pathlib import Path

import pytest

from epochwatt.errors import RecordError
from epochwatt.sweeps.collect_sweep import collect_sweep
from epochwatt.sweeps.mode_table import read_mode_tables


@pytest.fixture
def two(orin, bases):
    """A sweep of two modes of a fake board."""
    modes = [{"cores": 4, "cpu_mhz": 1344, "gpu_mhz": 318.75, "emc_mhz": 2133}, {"cores": 2}]
    return orin.sweep(base=bases["board"], grid={"modes": modes})


def collected(sweep, settings, table="results/sweeps/one.csv"):
    """Collect a sweep and return its rows."""
    Path(table).parent.mkdir(parents=True, exist_ok=True)  # as Snakemake does
    collect_sweep("measured", sweep.facts, settings.flag_effects, Path(table))
    (modes,) = read_mode_tables(Path(table))
    return modes.rows


def test_a_row_has_mode_mean_and_spread(two, orin, measure_mode):
    for mode in two.settings:
        measure_mode(two, mode)
    first, second = collected(two, orin.settings())
    assert (first.sweep, first.provenance, first.device) == ("one", "fake", "agx_orin")
    assert (first.workload, first.task, first.batch_size) == ("lenet", "train", 16)
    assert [first.cores, first.cpu_mhz, first.gpu_mhz, first.emc_mhz] == [4, 1344, 318.75, 2133]
    assert first.n_minibatches == 5
    assert first.time_s == pytest.approx(4.0 / 5)
    assert first.time_sd_s == pytest.approx(0.158113883)  # of 0.2, 0.3, ... 0.6 s
    assert (first.power_w, first.power_scope) == (None, "")
    assert first.valid
    assert (second.cores, second.gpu_mhz) == (2, None)


def test_flags_decide_what_is_valid(two, orin, measure_mode, caplog):
    measure_mode(two, two.settings[0], flags=["clock_below_request"])
    measure_mode(two, two.settings[1], flags=["cold_process"])
    first, second = collected(two, orin.settings())
    assert not first.valid
    assert "clock_below_request" in first.flags
    assert second.valid
    assert "one: 1 mode of 2 are not valid (clock_below_request)" in caplog.text


def test_an_unknown_flag_and_a_missing_mode_are_errors(two, orin, measure_mode):
    measure_mode(two, two.settings[0], flags=["from_the_future"])
    with pytest.raises(RecordError, match="from_the_future") as error:
        collected(two, orin.settings())
    assert two.id in str(error.value)
    measure_mode(two, two.settings[1])
    Path("measured", two.id).rename("elsewhere")
    with pytest.raises(RecordError):
        collected(two, orin.settings())
    assert not Path("results/sweeps/one.csv").exists()


def test_a_damaged_mode_goes_to_the_trash_and_is_measured_again(two, orin, measure_mode):
    for mode in two.settings:
        folder = measure_mode(two, mode)
    Path(folder.path_of(two.settings[1]), "minibatches.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(RecordError, match=r"was altered.*; the mode was moved to") as error:
        collected(two, orin.settings())
    assert "start the workflow again" in str(error.value)
    assert not folder.has(two.settings[1])
    assert folder.has(two.settings[0])


def test_what_was_measured_elsewhere_is_all_that_is_there(sweeps, bases, measure_mode):
    sweeps.sweep(base=bases["board"])
    ((absent, _),) = sweeps.table(["one"]).elsewhere
    for mode in ({"cores": 8, "gpu_mhz": 1300.5}, {"cores": 4, "gpu_mhz": 318.75}):
        measure_mode(absent, mode)
    rows = collected(sweeps.table(["one"]).sweeps["one"], sweeps.settings())
    assert [row.cores for row in rows] == [4, 8]
    assert {row.provenance for row in rows} == {"measured"}
