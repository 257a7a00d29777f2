"""A metric of a run, from its epochs."""

import csv

import pytest

from epochwatt.claims.number_sources import EpochTable, read_rows
from epochwatt.claims.verdict import NotEvaluable, Percentage
from epochwatt.columns import RUN_EPOCH_COLUMNS, names
from epochwatt.errors import RecordError


@pytest.fixture
def factors(terms):
    """Return a function that gives the factors a predicate means by its keys."""

    def of(device="agx", model="lenet", setup="sigmetrics2023", **keys):
        return {"setup": setup, **terms.factors(device, model, keys)}

    return of


@pytest.fixture
def six(epochs):
    return epochs({}, *[{"e2e_s": float(x)} for x in (50, 10, 20, 30, 40, 50)])


@pytest.mark.parametrize(
    ("epoch", "invalid", "value"),
    [("0", [], 50.0), ("1+", [], 30.0), ("all", [], 35.0), ("1+", [5], 25.0)],
)
def test_epoch_sets_have_valid_epochs(six, factors, epoch, invalid, value):
    for number in invalid:
        six[number]["valid"] = False
    table = EpochTable(six)
    assert table.number("e2e_s", factors(), epoch) == value
    assert table.inputs == {six[0]["run"]}


@pytest.mark.parametrize("other", [{"task": "infer"}, {"precision": "bf16"}])
def test_inference_and_other_arithmetic_are_not_pooled_with_training(six, factors, other):
    beside = [{**row, "run": "another", "e2e_s": 999.0, **other} for row in six]
    assert EpochTable([*beside, *six]).number("e2e_s", factors(), "1+") == 30.0


RUN = "run sigmetrics2023 agx d1 lenet ssd w=0 bs=16 mode g dvfs=off cache dropped scale 4"


@pytest.mark.parametrize(
    ("asked", "metric", "keys", "missing"),
    [
        (0, "e2e_s", {"w": 0, "cache": "dropped", "scale": 4}, f"^{RUN}$"),
        (0, "e2e_s", {"setup": "hipcw2021"}, "run hipcw2021 agx"),
        (0, "energy_wh", {}, "energy_paper_wh of run sigmetrics2023-twin"),
        (1, "e2e_s", {}, "a valid epoch of the set 0 of"),
        (2, "e2e_s", {}, "several are there"),
        (3, "power_w", {}, "one power scope in all epochs"),
    ],
)
def test_what_is_missing_is_named(asked, metric, keys, missing, six, epochs, factors):
    rows = {
        0: six,
        1: [{**six[0], "valid": False}, *six[1:]],
        2: six + epochs({"seed": 1}, {"e2e_s": 2.0}),
        3: [{**row, "power_scope": s} for row, s in zip(six, ["gpu", "module"], strict=False)],
    }[asked]
    with pytest.raises(NotEvaluable, match=missing):
        EpochTable(rows).number(metric, factors(**keys), "all" if asked == 3 else "0")


@pytest.mark.parametrize(
    ("metric", "columns", "value"),
    [
        ("power_w", {"power_mean_w": 31.0}, 31.0),
        ("iops", {"read_iops": 5.0}, 5.0),
        ("stall_ms_per_minibatch", {"stall_s": 0.5}, 50.0),
        ("compute_ms_per_minibatch", {"compute_s": 0.2}, 20.0),
        ("cpu_util_pct", {"cpu_util_pct": 9.0, "cpu_util_median_pct": 11.0}, 11.0),
        ("gpu_util_pct", {"gpu_util_pct": 99.0, "gpu_util_median_pct": 100.0}, 99.0),
        ("gpu_freq_mhz", {"gpu_freq_mhz": 1377.0}, 1377.0),
    ],
)
def test_metrics_of_an_epoch(epochs, factors, metric, columns, value):
    found = EpochTable(epochs({}, columns)).number(metric, factors(), "0")
    assert found == pytest.approx(value)
    assert isinstance(found, Percentage) == metric.endswith("_pct")


def test_idle_power_is_that_of_state_mode_and_scope(factors):
    place = {"device": "agx", "instance": "d1", "power_mode": "g", "state": "i"}
    scopes = (("module", "7.5"), ("socket", 9.0))
    table = EpochTable([], [{**place, "power_scope": s, "power_w": w} for s, w in scopes])
    assert table.idle_w(factors(), "i", "module") == 7.5
    with pytest.raises(NotEvaluable, match="idle power: agx d1 g iv socket"):
        table.idle_w(factors(), "iv", "socket")


def test_rows_are_read_from_the_runs_epochs_csv(six, factors, tmp_path):
    path = tmp_path / "epochs.csv"
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, names(RUN_EPOCH_COLUMNS))
        writer.writeheader()
        writer.writerows(six)
    rows = read_rows([path, path])
    assert len(rows) == 12
    assert (rows[0]["num_workers"], rows[0]["valid"], rows[0]["energy_wh"]) == (4, True, None)
    assert EpochTable(rows[:6]).number("e2e_s", factors(), "1+") == 30.0


@pytest.mark.parametrize("row", ["many", "1,2,3"])
def test_a_damaged_table_is_named_with_what_to_do(tmp_path, row):
    path = tmp_path / "epochs.csv"
    path.write_text(f"epoch\n{row}\n", "utf-8")
    with pytest.raises(RecordError, match=r"epochs\.csv is not a table of epochs: ") as caught:
        read_rows([path])
    assert caught.value.do.startswith("remove it")
