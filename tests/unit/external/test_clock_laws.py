"""The law of clocks: exact where it holds, judged on settings it was not fitted to."""

import numpy as np
import pytest

from epochwatt.external.clock_laws import end_rows, errors_pct, power_errors_pct
from epochwatt.sweeps.mode_table import SweepRow, tables_of

CORE, MEMORY = (600, 800, 1000, 1300), (400, 900, 1600)


def table(times, memory=MEMORY):
    """Return a table of one kernel; times: core MHz, memory MHz -> s."""
    of = {"sweep": "s", "provenance": "public", "device": "V100", "workload": "k", "task": "infer"}
    rows = [
        SweepRow(**of, gpu_mhz=core, emc_mhz=mem, time_s=times(core, mem))
        for core in CORE
        for mem in memory
    ]
    return tables_of(rows)[0]


def test_corners_are_the_nearest_rows():
    clocks = np.array([(600, 400), (1300, 400), (620, 1600), (1300, 1590), (900, 800)], float)
    assert end_rows(clocks) == [0, 1, 2, 3]
    assert end_rows(np.array([[700.0], [500.0], [900.0]])) == [1, 2]


def test_a_law_that_holds_has_no_error_between_the_corners():
    errors = errors_pct(table(lambda core, mem: 0.1 + 50 / core + 20 / mem))
    assert errors.size == len(CORE) * len(MEMORY) - 4
    assert errors == pytest.approx(0, abs=1e-9)
    one = errors_pct(table(lambda core, mem: 0.1 + 50 / core, memory=(400,) * 2))
    assert one.size == 4
    assert one == pytest.approx(0, abs=1e-9)


def test_a_knee_is_seen():
    errors = errors_pct(table(lambda core, mem: 1.0 if core > 900 else (900 / core) ** 3))
    assert np.median(errors) > 10


def test_too_few_settings_and_other_knobs_are_not_judged():
    few = table(lambda core, mem: 1 + core + mem, memory=(400,))
    assert errors_pct(few).size == 0
    of = {"sweep": "s", "provenance": "public", "device": "d", "workload": "k", "task": "train"}
    limits = [SweepRow(**of, power_limit_w=w, time_s=1.0) for w in (100, 150, 200, 250, 300)]
    assert errors_pct(tables_of(limits)[0]).size == 0


def powers(watts, n=9):
    """Return a table of one kernel's power over the core's clock."""
    of = {"sweep": "s", "provenance": "public", "device": "V100", "workload": "k", "task": "infer"}
    clocks = np.linspace(400, 1600, n)
    rows = [
        SweepRow(**of, gpu_mhz=mhz, time_s=1.0, power_w=watts(mhz / 1e3), power_scope="gpu")
        for mhz in clocks
    ]
    return tables_of(rows)[0]


def test_power_of_three_terms_is_exact_and_another_is_not():
    errors = power_errors_pct(powers(lambda f: 20 + 30 * f + 40 * f**3))
    assert errors.size == 9 - 4
    assert errors == pytest.approx(0, abs=1e-6)
    stepped = power_errors_pct(powers(lambda f: 50.0 if f < 0.6 else 200.0))
    assert np.median(stepped) > 5
    assert power_errors_pct(powers(lambda f: 1 + f, n=6)).size == 0
