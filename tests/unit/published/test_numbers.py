"""The papers' numbers in `config/published/`: complete, and as a second transcription has them."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.errors import ConfigError
from epochwatt.published.numbers import (
    BOTH_SIDES,
    KEYS,
    load_published,
    parse_config,
    run_key,
    single,
)
from epochwatt.tables import read_cells

TRANSCRIBED = Path(__file__).resolve().parents[2] / "data/published"
SI = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "mW": 1e-3, "W": 1}
MODES = {"custom(gpu_mhz=114.75)": "gpu114"}


def read(name):
    return {row["id"]: row for row in read_cells(TRANSCRIBED / name)}


def in_si(value, unit):
    return float(value) * SI.get(unit, 1)


def test_both_papers_are_there_whole(published):
    papers = Counter(fact.paper for fact in published.facts().values())
    assert papers == {"sigmetrics2023": 109 + 76, "hipcw2021": 53 + 10}
    kinds = Counter(m.kind for m in published.measurements.values())
    assert kinds == {"run": 139, "idle": 3, "protocol": 9, "prediction": 11}


def test_units_defaults_and_settings(published):
    ends = {"_s": "s", "_ms_per_minibatch": "ms", "_w": "W", "_wh": "Wh", "_pct": "pct"}
    for m in published.measurements.values():
        expected = [unit for end, unit in ends.items() if m.metric.endswith(end)]
        assert expected in ([], [m.unit]), m
        assert m.unit not in {"us", "min", "h", "mW"}
    assert published.measurements["S5.5.1-01"].config == parse_config("device=agx;model=resnet")
    nano = parse_config("device=nano;model=lenet")
    assert (nano["storage"], nano["num_workers"], nano["power_mode"]) == ("sd", 4, "MAXN")
    assert (nano["dvfs"], nano["epoch"], nano["cache"], nano["scale"]) == ("off", "1+", "kept", 1)
    idle = parse_config("device=agx;power_mode=g;state=iv")
    assert idle == {"device": "agx", "power_mode": "g", "state": "iv"}
    runs = single(published.relations["RS5.1.4-03"].config_a)
    modes = [(run["device"], run["power_mode"]) for run in runs]
    assert modes == [("agx", "g"), ("nx", "15W"), ("nano", "MAXN")]


def test_sides_and_bounds(published):
    relations = published.relations
    assert relations["RS5.1.3-03"].b_over_a == pytest.approx(1 / 2.4)
    assert relations["RS5.6-02"].b_over_a == 3.6
    assert relations["RS5.6.5-08"].b_over_a == pytest.approx(1.544)
    assert relations["RS5.6.3-01"].b_over_a is None
    assert all(len(r.sides) == (2 if r.formula in BOTH_SIDES else 1) for r in relations.values())
    interval = relations["RS5.6.5-01"]
    assert interval.is_bound
    assert [interval.is_met(v) for v in (-39, -38.7, -31, -30)] == [False, True, True, False]
    below = published.measurements["S5.1.6-01"]
    assert [below.is_met(v) for v in (19.9, 20.0)] == [True, False]
    least = relations["RS5.6.6-12"]
    assert [least.is_met(v) for v in (-7, -6.8, 1)] == [False, True, True]
    most = relations["RS5.4.3-01"]
    assert [most.is_met(v) for v in (5.89, 5.9)] == [True, False]
    assert not published.measurements["S5.5.1-01"].is_bound


words = st.from_regex(r"[a-z0-9+.]+", fullmatch=True)


@given(st.dictionaries(st.sampled_from(sorted({*KEYS} - {"device"})), words, min_size=1))
def test_a_configuration_is_read_as_it_is_written(told):
    numbers = {"num_workers": 3, "batch_size": 5, "scale": 0.25}
    expected = {key: numbers.get(key, value) for key, value in told.items()}
    assert parse_config(";".join(f"{k}={v}" for k, v in expected.items())) == expected
    assert run_key(expected) == tuple(expected.get(key) for key in KEYS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("device", "not a key=value of: device"),
        ("colour=red", "not a key=value of: device"),
        ("device=", "not a key=value of: device"),
        ("batch_size=many", "batch_size is 'many', which is not a number"),
        ("epoch=0;epoch=0", "epoch is named twice"),
    ],
)
def test_a_wrong_configuration_is_named(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_config(text)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("measurements.csv", "stall_s,46.4,s", "stall_s,long,s", "line 7: value is 'long'"),
        ("measurements.csv", "S5.1.1-02,", "S5.1.1-01,", "S5.1.1-01 is there twice"),
        ("measurements.csv", "s,exact", "s,sure", "qualifier is 'sure'\n  allowed: 'exact'"),
        ("measurements.csv", "4.4,run", "4.4,ran", "kind is 'ran'\n  allowed: 'run', 'idle'"),
        ("measurements.csv", "sigmetrics2023,", "sigmod,", "paper is 'sigmod'\n  allowed: 'sig"),
        ("measurements.csv", ",note", "", "line 2 has more or fewer cells"),
        ("measurements.csv", ",qualifier,", ",certainty,", "no column qualifier"),
        ("relations.csv", "A/B,2.5", "A-B,2.5", "formula is 'A-B', allowed: A/B"),
        ("relations.csv", "x,exact", ",exact", "unit is ''"),
        ("relations.csv", "1.8,3.9", "1.8,1.7", "value_hi is 1.7, below value 1.8"),
        ("relations.csv", "A/B,2.5", "min..max,2.5", "and the formula is min..max"),
    ],
)
def test_a_wrong_row_is_named(copy, name, old, new, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as error:
        load_published(copy(f"published/{name}", old, new))
    assert name in str(error.value)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"measurements\.csv cannot be read"):
        load_published(tmp_path)


def test_measurements_are_the_papers(published):
    given_rows = read("measurements.csv")
    assert list(published.measurements) == list(given_rows)
    for name, row in given_rows.items():
        ours = published.measurements[name]
        told = {**row, "scale": row["dataset_scale"]}
        for key in set(KEYS) & told.keys():
            if told[key] and "device" in ours.config:
                value = MODES.get(told[key], told[key])
                assert ours.config[key] == type(ours.config[key])(value), (name, key)
        slipped = row["status"] == "suspect"
        printed = in_si(row["value"], row["unit"])
        expected = in_si(row["corrected_value"], row["corrected_unit"]) if slipped else printed
        assert in_si(ours.value, ours.unit) == pytest.approx(expected), name
        assert (ours.qualifier, ours.section) == (row["qualifier"], row["section"])
        assert ours.note.startswith("slip") == slipped
        if ours.as_printed:
            number, unit = ours.as_printed.split()
            assert in_si(number, unit) == pytest.approx(printed), name
        assert ours.metric == row["metric"] or ours.as_printed, name


def test_relations_are_the_papers(published):
    given_rows = read("relations.csv")
    assert list(published.relations) == list(given_rows)
    slips = set()
    for name, row in given_rows.items():
        ours = published.relations[name]
        assert (ours.qualifier, ours.section) == (row["qualifier"], row["section"])
        assert ours.value_hi == (float(row["value_hi"]) if row["value_hi"] else None)
        if ours.as_printed:
            slips.add(name)
            assert ours.as_printed.split()[0] == row["value"]
            assert ours.value == pytest.approx(float(row["computed"]), rel=0.01)
            assert row["consistent"] == "no"
            assert ours.note.startswith("slip")
        else:
            assert ours.value == float(row["value"]), name
        for side, text in zip(ours.sides, (row["config_a"], row["config_b"]), strict=False):
            assert same_sides(side, text), (name, text)
    assert slips == {"RS5.5.1-01", "RH-III.B-01", *(f"RH-III.A-0{k}" for k in range(1, 7))}


def same_sides(config, text):
    """Say whether a side is the one transcribed, where that names one setting of a key."""
    for part in re.split(r";(?![^(]*\))", text):
        key, _, value = part.partition("=")
        key, value = {"dataset_scale": "scale"}.get(key, key), MODES.get(value, value)
        if ".." in value or value.startswith(("arg", "d1-", "each")) or key not in KEYS:
            continue
        if config[key] != type(config[key])(value):
            return False
    return True
