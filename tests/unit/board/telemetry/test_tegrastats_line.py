"""The lines of tegrastats in all dialects."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.board.telemetry.tegrastats import Line, parse_line

DATA = Path(__file__).resolve().parents[3] / "data/tegrastats"
RECORDED = Path(__file__).resolve().parents[5] / "shared/data/tegrastats"

DIALECTS = {
    "nano_jp4_root": (
        "RAM 1500/3964MB (lfb 100x4MB) SWAP 1/1982MB (cached 0MB) IRAM 0/252kB(lfb 252kB) "
        "CPU [90%@1479,off,0%@102,9%@1479] EMC_FREQ 6%@1600 GR3D_FREQ 7%@768 NVENC 716 APE 25 "
        "PLL@28C CPU@32.5C PMIC@50C GPU@28.5C AO@-7C POM_5V_IN 2700/2911 POM_5V_GPU 150/161 "
        "POM_5V_CPU 790/989"
    ),
    "nano_jp4_user": (
        "RAM 1766/3964MB (lfb 197x4MB) SWAP 0/2048MB (cached 0MB) CPU [24%@1224,15%@1224] "
        "EMC_FREQ 0% GR3D_FREQ 42% PLL@21C POM_5V_IN 2545/2547 POM_5V_GPU 0/0 POM_5V_CPU 549/529"
    ),
    "nx_jp4": (
        "RAM 1802/7772MB (lfb 357x4MB) SWAP 0/3886MB (cached 0MB) CPU [100%@1420,99%@1420] "
        "EMC_FREQ 10%@1600 GR3D_FREQ 62%@306 APE 150 MTS fg 0% bg 7% AO@42.5C VDD_IN 14703/14683 "
        "VDD_CPU_GPU_CV 10874/10893 VDD_SOC 1405/1405"
    ),
    "agx_xavier_jp4": (
        "RAM 4603/31919MB (lfb 6471x4MB) SWAP 0/15959MB (cached 0MB) CPU [36%@1190,33%@1190,off] "
        "EMC_FREQ 31%@1065 GR3D_FREQ 99%@522 APE 150 MTS fg 1% bg 3% GPU@45.5C CPU@44C "
        "GPU 2326/2367 CPU 465/514 SOC 1551/1550 CV 0/0 VDDRQ 1085/1209 SYS5V 3240/3238"
    ),
    "agx_xavier_jp5": (
        "RAM 4603/31919MB (lfb 6471x4MB) CPU [0%@1190,1%@1190] EMC_FREQ 0%@1331 GR3D_FREQ 0%@114 "
        "VIC_FREQ 115 APE 150 GPU@35C GPU 467mW/468mW CPU 467mW/467mW SOC 1245mW/1245mW "
        "CV 0mW/0mW VDDRQ 311mW/311mW SYS5V 2768mW/2768mW"
    ),
    "orin_agx_jp5": (
        "11-21-2025 08:49:48 RAM 13983/62780MB (lfb 424x4MB) SWAP 126/31390MB (cached 0MB) "
        "CPU [90%@2201,100%@2201] EMC_FREQ 1%@2133 GR3D_FREQ 14%@[407,408] VIC_FREQ 115 "
        "NVDLA0_FREQ @1600 APE 174 CV0@-256C CPU@77.281C VDD_GPU_SOC 3150mW/2971mW "
        "VDD_CPU_CV 14312mW/12415mW VIN_SYS_5V0 4968mW/5048mW NC 0mW/0mW "
        "VDDQ_VDD2_1V8AO 1091mW/1091mW NC 0mW/0mW"
    ),
    "orin_agx_jp5_early": (
        "RAM 13983/62780MB (lfb 424x4MB) CPU [90%@2201] EMC_FREQ 1%@2133 GR3D_FREQ 0%@0 "
        "GR3D2_FREQ 3%@5 VDD_GPU_SOC 3150mW/2971mW VDD_CPU_CV 14312mW/12415mW "
        "VIN_SYS_5V0 4968mW/5048mW"
    ),
    "orin_agx_jp6": (
        "RAM 29114/30697MB (lfb 3x4MB)    SWAP 4915/15348MB (cached 1MB) CPU [3%@729,4%@729] "
        "EMC_FREQ 1%@2133 GR3D_FREQ 0%@[305,305] NVENC      off  NVDEC    off NVJPG1    off   "
        "PVA0_FREQ off   APE    174   cpu@53.062C  gpu@47.812C    VDD_GPU_SOC 3205mW/3205mW "
        "VDD_CPU_CV 4405mW/4405mW VIN_SYS_5V0 4767mW/4767mW\n"
    ),
    "orin_agx_jp7": (
        "07-25-2026 09:08:28 RAM 20642/62817MB (lfb 1x2MB) CPU [23%@2201,10%@2201] "
        "EMC_FREQ 3%@3199 GR3D_FREQ 12%@[1300,1300] NVENC0 off VIC off cpu@52.968C/53.968C "
        "VDD_GPU_SOC 5139mW/5140mW/5141mW VDD_CPU_CV 3268mW/3269mW/3270mW "
        "VIN_SYS_5V0 5500mW/5501mW/5502mW"
    ),
    "orin_nx_jp5": (
        "RAM 6334/15388MB (lfb 1770x4MB) SWAP 491/7694MB (cached 0MB) CPU [6%@729,off] "
        "EMC_FREQ 43%@2133 GR3D_FREQ 63%@[621] VIC_FREQ 729 APE 174 CV0@45.812C "
        "VDD_IN 5299mW/5300mW VDD_CPU_GPU_CV 773mW/773mW VDD_SOC 1424mW/1424mW"
    ),
}

RAILS_MW = {  # in the order of the line
    "nano_jp4_root": (2700, 150, 790),
    "nano_jp4_user": (2545, 0, 549),
    "nx_jp4": (14703, 10874, 1405),
    "agx_xavier_jp4": (2326, 465, 1551, 0, 1085, 3240),
    "agx_xavier_jp5": (467, 467, 1245, 0, 311, 2768),
    "orin_agx_jp5": (3150, 14312, 4968, 1091),
    "orin_agx_jp5_early": (3150, 14312, 4968),
    "orin_agx_jp6": (3205, 4405, 4767),
    "orin_agx_jp7": (5139, 3268, 5500),
    "orin_nx_jp5": (5299, 773, 1424),
}
LABELS = {
    "nano": ("POM_5V_IN", "POM_5V_GPU", "POM_5V_CPU"),
    "nx": ("VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"),
    "agx": ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"),
    "orin_agx": ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "VDDQ_VDD2_1V8AO"),
    "orin_nx": ("VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"),
}
GPU = {  # load, highest clock
    **{"nano_jp4_root": (7, 768), "nano_jp4_user": (42, None), "nx_jp4": (62, 306)},
    **{"agx_xavier_jp4": (99, 522), "agx_xavier_jp5": (0, 114), "orin_agx_jp5": (14, 408)},
    **{"orin_agx_jp5_early": (0, 0), "orin_agx_jp6": (0, 305), "orin_agx_jp7": (12, 1300)},
    "orin_nx_jp5": (63, 621),
}

NOTHING = Line({}, {}, None, None, None, None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rails_and_gpu_of_each_dialect(dialect):
    line = parse_line(DIALECTS[dialect])
    board = max((name for name in LABELS if dialect.startswith(name)), key=len)
    assert line.rails_mw == dict(zip(LABELS[board], RAILS_MW[dialect], strict=False))
    assert len(line.rails_mw) == len(RAILS_MW[dialect])
    assert (line.gpu_pct, line.gpu_mhz) == GPU[dialect]


@pytest.mark.parametrize(
    ("dialect", "temps_c"),
    [
        ("nano_jp4_root", {"PLL": 28.0, "CPU": 32.5, "PMIC": 50.0, "GPU": 28.5, "AO": -7.0}),
        ("orin_agx_jp5", {"CV0": None, "CPU": 77.281}),
        ("orin_agx_jp7", {"cpu": 52.968}),
    ],
)
def test_temperatures(dialect, temps_c):
    assert parse_line(DIALECTS[dialect]).temps_c == temps_c


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


WORDS = sorted({word for line in DIALECTS.values() for word in line.split()})
LINES = st.one_of(
    st.text(), mixed(WORDS), mixed([" ".join(DIALECTS[d].split()[4:12]) for d in DIALECTS])
)


@given(LINES)
def test_no_text_crashes_the_parser_and_no_value_is_invented(text):
    line = parse_line(text)
    there = [float(n) for n in re.findall(r"-?[0-9]+(?:\.[0-9]+)?", text)]
    assert set(map(float, numbers(line))) <= {*there, *map(abs, there)}
    assert all(name in text for name in (*line.rails_mw, *line.temps_c))


LINES = {  # file: kind, number of rails
    "agx_xavier_jp4": ("agx_xavier", 6),
    "agx_xavier_jp5_partial": ("agx_xavier", 6),
    "nano_jp4": ("nano", 3),
    "nano_jp4_swapped_rail_labels": (None, 3),
    "orin_agx_jp5": ("agx_orin", 4),
    "orin_agx_jp6": ("agx_orin", 3),
    "orin_agx_jp7": ("agx_orin", 3),
    "orin_nano_jp6": ("orin_nano", 3),
    "orin_nx_jp5": ("orin_nx", 3),
    "tx2_jp4": (None, 6),
    "xavier_nx_jp4": ("xavier_nx", 3),
    "xavier_nx_jp4_no_power_rails": (None, 0),
}
WITH_A_LICENCE = ("orin_agx_jp6", "orin_nx_jp5")


@pytest.fixture(params=[(True, name) for name in WITH_A_LICENCE] + [(False, n) for n in LINES])
def recorded(request):
    """Name of a file and its lines: those of the repository, and those that have no licence."""
    in_repository, name = request.param
    path = (DATA if in_repository else RECORDED) / f"{name}.txt"
    if not in_repository and not path.exists():
        pytest.skip(f"{path} has no licence, so it is not in the repository, and is absent")
    return name, path.read_text("utf-8").splitlines()


def test_every_rail_temperature_and_load_of_recorded_lines_is_read(recorded):
    name, lines = recorded
    _, n_rails = LINES[name]
    assert lines
    for text in lines:
        line = parse_line(text)
        assert len(line.rails_mw) == n_rails
        assert line.gpu_pct == int(re.search(r"GR3D_FREQ (\d+)", text).group(1))
        assert len(line.temps_c) == len(re.findall(r"@-?[0-9.]+C", text))
        for label, milliwatts in line.rails_mw.items():
            assert f" {label} {milliwatts}" in text


def test_recorded_lines_of_known_boards_have_a_total_without_complaint():
    boards = {name: kind for name, (kind, _) in LINES.items() if kind}
    paths = [DATA / f"{name}.txt" for name in WITH_A_LICENCE]
    paths += [path for path in RECORDED.glob("*.txt") if path.stem in boards]
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            rails_mw = parse_line(line).rails_mw
            power = ModulePower(boards[path.stem], list(rails_mw))
            total_w = power.row([mw / 1e3 for mw in rails_mw.values()])[-1]
            assert power.no_total is power.contradiction is None
            assert 2.0 < total_w < 60.0
