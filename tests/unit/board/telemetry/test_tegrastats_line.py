"""The lines of tegrastats in all dialects."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.board.telemetry.tegrastats import Line, parse_line

DATA = Path(__file__).resolve().parents[3] / "data/tegrastats"
DIALECTS = {
    row["dialect"]: row
    for row in csv.DictReader((DATA / "dialects.csv").read_text("utf-8").splitlines())
}
NOTHING = Line({}, {}, None, None, None, None)


@pytest.mark.parametrize("row", DIALECTS.values(), ids=DIALECTS)
def test_rails_and_gpu_of_each_dialect(row):
    line = parse_line(row["line"])
    told = " ".join(f"{label}={milliwatts}" for label, milliwatts in line.rails_mw.items())
    assert told == row["rails_mw"]
    assert line.gpu_pct == int(row["gpu_pct"])
    assert line.gpu_mhz == (int(row["gpu_mhz"]) if row["gpu_mhz"] else None)


@pytest.mark.parametrize(
    ("dialect", "temps_c"),
    [
        ("nano_jp4_root", {"PLL": 28.0, "CPU": 32.5, "PMIC": 50.0, "GPU": 28.5, "AO": -7.0}),
        ("orin_agx_jp5", {"CV0": None, "CPU": 77.281}),
        ("orin_agx_jp7", {"cpu": 52.968}),
    ],
)
def test_temperatures(dialect, temps_c):
    assert parse_line(DIALECTS[dialect]["line"]).temps_c == temps_c


@pytest.mark.parametrize(
    "line",
    [
        *("RAM 1/2GB", "VDD_IN 5mW/6", "VDD_IN 5/6mW", "VDD_IN 5", "GPU@fC", "CPU [1%@2,"),
        *("FOO_FREQ 3", "EMC_FREQ", "GR3D_FREQ 3", "APE -5", "CPU@1.2.3C"),
        "POM_5V_IN 1234567890/1",
    ],
)
def test_nothing_is_made_of_strange_words(line):
    assert parse_line(line) == NOTHING


def numbers(line):
    """Return all numbers in a parsed line."""
    rails_mw, temps_c, *loads = line
    return [n for n in (*rails_mw.values(), *temps_c.values(), *loads) if n is not None]


def mixed(words):
    """Return lines made of words of all dialects, cut and glued at random."""
    word = st.sampled_from(words)
    piece = st.one_of(
        word,
        st.builds(lambda w, n: w[:n], word, st.integers(0, 20)),
        st.builds(lambda w, n: w[n:], word, st.integers(0, 20)),
        st.text(alphabet="0123456789%@[],/.-mWCoff RAM()xBk٣", max_size=12),
        st.from_regex(r"\A-?[0-9]{1,25}\Z"),
    )
    return st.lists(st.tuples(piece, st.sampled_from(["", " ", " ", "\t", "\n"])), max_size=30).map(
        lambda pairs: "".join(text + gap for text, gap in pairs)
    )


WORDS = sorted({word for row in DIALECTS.values() for word in row["line"].split()})
LINES = st.one_of(
    st.text(),
    mixed(WORDS),
    mixed([" ".join(row["line"].split()[4:12]) for row in DIALECTS.values()]),
)


@given(LINES)
def test_no_text_crashes_the_parser_and_no_value_is_invented(text):
    line = parse_line(text)
    there = [float(n) for n in re.findall(r"-?[0-9]+(?:\.[0-9]+)?", text)]
    assert set(map(float, numbers(line))) <= {*there, *map(abs, there)}
    assert all(name in text for name in (*line.rails_mw, *line.temps_c))


@pytest.mark.parametrize(
    ("name", "kind", "n_rails"), [("orin_agx_jp6", "agx_orin", 3), ("orin_nx_jp5", "orin_nx", 3)]
)
def test_recorded_lines_are_read_whole_and_have_a_total_without_complaint(name, kind, n_rails):
    for text in (DATA / f"{name}.txt").read_text("utf-8").splitlines():
        line = parse_line(text)
        assert len(line.rails_mw) == n_rails
        assert line.gpu_pct == int(re.search(r"GR3D_FREQ (\d+)", text).group(1))
        assert len(line.temps_c) == len(re.findall(r"@-?[0-9.]+C", text))
        for label, milliwatts in line.rails_mw.items():
            assert f" {label} {milliwatts}" in text
        power = ModulePower(kind, list(line.rails_mw))
        total_w = power.row([mw / 1e3 for mw in line.rails_mw.values()])[-1]
        assert power.no_total is power.contradiction is None
        assert 2.0 < total_w < 60.0
