"""What of mode tables is judged together, and from which modes."""

import pytest

from epochwatt.prediction.evaluation.sweep_names import DESIGNED, RANDOM
from epochwatt.prediction.evaluation.sweep_units import draws_of, units_of, with_reference
from tests.unit.prediction.sweeps import GRID, limited, planted


def test_a_large_table_stands_alone_and_small_ones_are_pooled():
    small = [limited(workload="net", batch_size=n) for n in (8, 16, 32)]
    units, left_out = units_of([planted(), *small, planted(GRID[:4], workload="few")])
    assert [(u.sweep, u.workload, u.n_modes) for u in units] == [
        ("planted", "planted", 48),
        ("limits", "3 workloads", 7),
    ]
    assert [u.sizes() for u in units] == [[4, 10], [4]]
    assert left_out == ["planted: few: 4 modes, 6 or more are needed"]
    assert [u.knobs for u in units] == [("cpu_mhz", "gpu_mhz", "emc_mhz"), ("power_limit_w",)]


def test_many_large_tables_of_a_sweep_are_pooled():
    units, _ = units_of([planted(workload=f"w{n}") for n in range(9)])
    assert [(u.workload, u.sizes()) for u in units] == [("9 workloads", [4])]


def test_a_table_that_cannot_be_read_is_left_out_with_its_reason():
    wrong = planted(GRID[:8])
    wrong = type(wrong)(
        wrong.key, (*wrong.rows, *planted([(8, 500, 500, 500)], gpu_share=0.5).rows)
    )
    units, left_out = units_of([wrong])
    assert units == []
    assert left_out[0].startswith("planted: planted: gpu_share is known of 1 of 9 valid rows")


@pytest.mark.parametrize(("how", "n_draws"), [(RANDOM, 10), (DESIGNED, 1)])
def test_no_mode_trains_and_tests_at_once(how, n_draws):
    (unit,), _ = units_of([planted(repeats=3)])
    draws = draws_of(unit, 4, how)
    assert len(draws) == n_draws
    for draw in draws:
        assert len(set(draw.modes.train)) == 4
        assert set(draw.modes.train) | set(draw.modes.test) == set(unit.tables[0].distinct())
        assert not set(draw.modes.train) & set(draw.modes.test)
    assert len({draw.modes.train for draw in draws}) == n_draws


def test_draws_are_the_same_at_each_call():
    (unit,), _ = units_of([planted()])
    first, second = (draws_of(unit, 10, RANDOM) for _ in range(2))
    assert [draw.modes for draw in first] == [draw.modes for draw in second]


def test_designed_modes_are_further_apart_than_random_ones():
    """At least one of the lowest and of the highest GPU clocks: the term that matters most."""
    (unit,), _ = units_of([planted()])
    (draw,) = draws_of(unit, 4, DESIGNED)
    clocks = {mode.gpu_mhz for mode in draw.modes.train}
    assert {min(clocks), max(clocks)} == {150, 1300}


def test_reference_is_another_workload_first_of_the_same_device():
    (unit,), _ = units_of([planted()])
    elsewhere = planted(workload="elsewhere", device="other board")
    few, same = planted(GRID[:8], workload="few"), planted(workload="same")
    no_power = planted(workload="no power", power_w=None)
    tables = [planted(), elsewhere, few, no_power, same]
    chosen = with_reference(unit, tables).references[0]
    assert chosen.rows.workload == "planted: same"
    assert not chosen.is_other_board
    assert with_reference(unit, tables[:2]).references[0].is_other_board
    assert with_reference(unit, [planted(), few, no_power]).references == ()


def test_workloads_that_are_judged_together_transfer_from_another_one_of_them():
    tables = [planted(workload=f"net {n}") for n in range(12)]
    (unit,), _ = units_of(tables)
    assert unit.is_pooled
    chosen = with_reference(unit, tables)
    for table in chosen.tables:
        assert chosen.reference_of(table).rows.workload != table.workload
    outside = with_reference(unit, [planted(workload="outside"), *tables])
    assert {outside.reference_of(table).rows.workload for table in unit.tables} == {
        "planted: outside"
    }


def test_a_reason_that_many_share_is_given_once():
    tables = [planted(GRID[:4], workload=f"net {n}") for n in range(45)]
    _, left_out = units_of([planted(), *tables])
    assert left_out == ["45 alike, such as planted: net 0: 4 modes, 6 or more are needed"]
    small = [planted(GRID[:8], workload=f"net {n}") for n in range(45)]
    (unit,), _ = units_of(small)
    reason = with_reference(unit, small).no_reference
    assert reason.count("20 or more are needed") == 1
    assert "45 alike" in reason
