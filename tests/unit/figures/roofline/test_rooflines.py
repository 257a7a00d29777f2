"""Figures of rooflines: the numbers of their CSV, what they say of themselves, what is left out."""

import csv
import json
from dataclasses import replace

import pytest
from panels import assert_readable, drawn_texts

from epochwatt.figures.roofline.rooflines import draw, looks
from epochwatt.figures.roofline.tuning import draw_tuning
from epochwatt.roofline.fits import FitRow, write_fits
from epochwatt.roofline.points import Point, write_points
from epochwatt.roofline.public import write_public

STYLE, PEAKS = "config/paper.mplstyle", "config/rooflines/peaks.csv"
PUBLIC = (
    "rooflines/orin-ceilings.csv.gz",
    "rooflines/orin-points.csv.gz",
    "rooflines/resnet-kernels.csv",
    "sweeps/energy-time-fairness-tx2.csv.gz",
)
MODE = {"cores": 12, "cpu_mhz": 2200, "gpu_mhz": 1300, "emc_mhz": 3200}
SHARED = {"provenance": "simulated", "device": "orin", "processor": "gpu", "precision": "fp32"}
RATES = {"flops_per_s": 2e12, "bytes_per_s": 1e11, "launch_s": 1e-5}
COSTS = {"j_per_flop": 5e-12, "j_per_byte": 6e-11, "constant_w": 9.0}
FIT = FitRow(
    **SHARED, **MODE, **RATES, **COSTS, ridge_flop_per_byte=20.0, balance_flop_per_byte=12.0, n=20
)
WORK = {"workload": "lenet", "task": "train", "flops": 1e9, "bytes": 2e8, "time_s": 0.01}
POINT = Point(**SHARED, **MODE, **WORK, power_w=20.0, power_scope="module")
OTHERS = [
    replace(FIT, gpu_mhz=300, flops_per_s=5e11),
    replace(FIT, emc_mhz=600, bytes_per_s=2e10),
    replace(FIT, cores=4),
    replace(FIT, gpu_mhz=300, emc_mhz=600),  # differs in two parts: not shown
]


@pytest.fixture
def drawn(tmp_path, pytestconfig):
    def call(fits, points, origin="simulated", records=()):
        write_fits(tmp_path / "fits.csv", fits)
        write_points(tmp_path / "points.csv", points)
        root = pytestconfig.rootpath
        inputs = [str(tmp_path / "fits.csv"), str(tmp_path / "points.csv")]
        inputs += [str(root / "config/rooflines/peaks.csv"), str(root / STYLE)]
        draw(*inputs, str(tmp_path), origin, {"lenet": "LeNet-5"}, records)
        tables = {}
        for what in ("time", "energy"):
            with open(tmp_path / f"{what}_{origin}.csv", newline="", encoding="utf-8") as handle:
                tables[what] = list(csv.DictReader(handle))
        return tables

    return call


def test_roofs_ridges_and_workloads_are_where_the_numbers_say(drawn, tmp_path):
    tables = drawn([FIT, *OTHERS], [POINT])
    (mark,) = [row for row in tables["time"] if row["what"] == "train"]
    assert float(mark["intensity_flop_per_byte"]) == 5
    assert float(mark["flop_per_s"]) == pytest.approx(1e11)
    roofs = [row for row in tables["time"] if row["what"] == "roof"]
    assert {r["mode"] for r in roofs} == {"highest mode", "lowest GPU clock", "lowest memory clock"}
    top = max(float(r["flop_per_s"]) for r in roofs if r["mode"] == "highest mode")
    assert top == pytest.approx(2e12)
    assert any(row["what"] == "data sheet" for row in tables["time"])
    (mark,) = [row for row in tables["energy"] if row["what"] == "train"]
    assert float(mark["flop_per_j"]) == pytest.approx(1e9 / 0.2)
    ridge = [r for r in tables["energy"] if r["what"] == "ridge" and r["mode"] == "highest mode"]
    assert float(ridge[0]["intensity_flop_per_byte"]) == 20
    for what in ("time", "energy"):
        text = (tmp_path / f"{what}_simulated.txt").read_text()
        assert "Simulated boards, not measured." in text
        spec = json.loads((tmp_path / f"{what}_simulated.vl.json").read_text())
        assert spec["title"]["subtitle"].startswith("simulated boards, not measured")
        assert len(spec["data"]["values"]) == len(tables[what])
        assert (tmp_path / f"{what}_simulated.png").stat().st_size > 5000


def test_names_of_workloads_lie_neither_on_one_another_nor_on_marks(drawn):
    beside = [("mobilenet", 1.05), ("lstm", 1.1), ("resnet50", 1.2), ("lenet", 1.0), ("lenet", 9.0)]
    points = [
        replace(POINT, workload=name, bytes=POINT.bytes / near, time_s=slow * POINT.time_s)
        for name, near in beside
        for slow in (1, 3)
    ]
    with drawn_texts() as texts:
        drawn([FIT, *OTHERS], points)
    assert len(texts) == 2
    assert_readable(dict(enumerate(texts.values())))
    for figure, rows in texts.items():
        (axes,) = figure.axes
        marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
        at = [axes.transData.transform(mark.get_xydata()[0]) for mark in marks]
        names = {text: box for text, box, _ in rows if text in axes.texts}
        assert sorted(text.get_text() for text in names) == [
            *("LeNet-5", "LeNet-5", "lstm", "mobilenet", "resnet50")
        ]
        assert not [t for t, box in names.items() for x, y in at if box.contains(x, y)]


def test_rooflines_of_others_are_readable(tmp_path, pytestconfig):
    root = pytestconfig.rootpath
    tables = [str(tmp_path / "fits.csv"), str(tmp_path / "points.csv")]
    public = [str(root / "config" / name) for name in PUBLIC]
    write_public(*public, *tables)
    with drawn_texts() as texts:
        draw(*tables, str(root / PEAKS), str(root / STYLE), str(tmp_path), "public", {})
    assert_readable(dict(enumerate(texts.values())))


def test_a_peak_has_the_colour_of_its_mode(drawn):
    public = {"provenance": "public", "device": "orin.nano"}
    modes = ("7W", "MAXN_SUPER")
    fits = [
        replace(FIT, **public, instance=mode, flops_per_s=1e11 * (1 + n), gpu_mhz=500 + n)
        for n, mode in enumerate(modes)
    ]
    points = [
        replace(POINT, **public, instance=mode, gpu_mhz=500 + n) for n, mode in enumerate(modes)
    ]
    with drawn_texts() as texts:
        drawn(fits, points, "public")
    (axes,) = next(iter(texts)).axes
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert [line.get_color() for line in dotted] == [looks(modes)["MAXN_SUPER"].colour]


MODELESS = {"provenance": "measured", "device": "host", "instance": "local", "processor": "cpu"}
MODELESS |= {"cores": 1, "cpu_mhz": None, "gpu_mhz": None, "emc_mhz": None}
PLAIN = {"j_per_flop": None, "j_per_byte": None, "constant_w": None, "balance_flop_per_byte": None}
HOST = replace(FIT, **MODELESS, **PLAIN)
RUN = replace(POINT, **MODELESS, power_w=None, power_scope="", batch_size=32)


def test_without_power_the_energy_figure_says_so_and_describes_nothing(drawn, tmp_path):
    tables = drawn([HOST], [RUN], "measured")
    assert tables["energy"] == []
    svg = (tmp_path / "energy_measured.svg").read_text()
    assert "Measured on this machine · Energy roofline: not drawn" in svg
    text = (tmp_path / "energy_measured.txt").read_text()
    assert "Power was not measured" in svg
    assert "`epochwatt doctor` says" in text
    assert "circles" not in text
    head = (tmp_path / "energy_measured.csv").read_text().splitlines()[0]
    assert head.endswith("intensity_flop_per_byte,flop_per_j,line")
    assert "measured on this machine" in (tmp_path / "time_measured.txt").read_text().lower()


def test_a_lone_roof_has_its_numbers_its_machine_and_what_runs_reach(drawn, tmp_path):
    record = {"machine": {"cpu_model": "A CPU"}, "software": {"torch": "2.9.1+cpu"}}
    (tmp_path / "run/epoch-0").mkdir(parents=True)
    (tmp_path / "run/epoch-0/record.json").write_text(json.dumps(record))
    others = [replace(RUN, time_s=0.02), replace(RUN, batch_size=16, time_s=0.008)]
    records = [str(tmp_path / "run"), str(tmp_path / "gone")]
    with drawn_texts() as texts:
        tables = drawn([HOST], [RUN, *others], "measured", records)
    told = {text.get_text() for text, _, _ in next(iter(texts.values()))}
    assert {"100 GB/s", "2 TFLOP/s", "ridge 20.0 FLOP/B"} <= told
    assert {"LeNet-5, batch 32 (2 runs)", "LeNet-5, batch 16"} <= told
    assert {"this machine's CPU (A CPU, PyTorch 2.9.1)", "1 core, clocks not set"} <= told
    assert "Measured on this machine · Time roofline" in told
    (note,) = [words for words in told if words.startswith("measured on this machine;")]
    assert " ".join(note.split()).endswith("workloads reach 10 to 25 % of the roof")
    roof = [row for row in tables["time"] if row["what"] == "roof"]
    at = [float(row["intensity_flop_per_byte"]) for row in roof]
    assert at == [1.0, 20.0, 100.0]  # the corner, and no further than marks and corner need
    text = (tmp_path / "time_measured.txt").read_text()
    assert "triangles" not in text
    assert "data sheet" not in text


@pytest.mark.parametrize(
    ("roof", "run"),
    [
        # ceilings of an H100, with LeNet far below them
        ({"flops_per_s": 6e13, "bytes_per_s": 3e12}, {"time_s": 2e-3}),
        # a machine whose cores others used: a run took 200 times as long as the roof allows
        ({"flops_per_s": 1.66e11, "bytes_per_s": 5.4e9}, {"flops": 3.7e7, "bytes": 1e7}),
        # twelve orders of magnitude
        ({"flops_per_s": 1e15, "bytes_per_s": 1e13}, {"flops": 1e6, "time_s": 1e3}),
        # the mark lies on the roof
        ({"flops_per_s": 2e12, "bytes_per_s": 1e11}, {"time_s": 2e8 / 1e11}),
    ],
)
def test_axes_hold_all_marks_however_far_they_lie_below_the_roof(drawn, roof, run):
    ridge = {"ridge_flop_per_byte": roof["flops_per_s"] / roof["bytes_per_s"]}
    with drawn_texts() as texts:
        drawn([replace(HOST, **roof, **ridge)], [replace(RUN, **run)], "measured")
    (axes,) = next(iter(texts)).axes
    (low, high), marks = axes.get_ylim(), [y for line in axes.lines for y in line.get_ydata()]
    assert 0 < low < min(marks) <= max(marks) < high < 1e20
    assert_readable(dict(enumerate(texts.values())))


def test_work_that_costs_nothing_and_other_precisions_are_not_drawn(drawn):
    free = replace(FIT, j_per_flop=0.0, constant_w=0.0, balance_flop_per_byte=None)
    assert drawn([free], [POINT])["energy"] == []
    tables = drawn([replace(FIT, j_per_byte=0.0, constant_w=0.0)], [POINT])
    assert {row["what"] for row in tables["energy"]} == {"roof", "ridge", "train"}
    tables = drawn([FIT], [replace(POINT, precision="fp16")])
    assert "train" not in {row["what"] for row in tables["time"]}


def test_ceilings_of_a_shared_machine_are_never_what_it_does_at_best(drawn, tmp_path):
    shared = replace(HOST, flags="machine_shared")
    for fit, is_shared in ((HOST, False), (shared, True)):
        drawn([fit], [RUN], "measured")
        svg = (tmp_path / "time_measured.svg").read_text()
        caption = " ".join((tmp_path / "time_measured.txt").read_text().split())
        assert ("could do at best" in caption) is not is_shared
        assert ("of the roof" in svg) is not is_shared
        for text in (svg, caption):
            assert ("machine_shared" in text) is is_shared


def test_tuned_modes_are_drawn_by_origin(tmp_path, pytestconfig):
    columns = [
        *("provenance", "sweep", "device", "workload", "task", "power_scope", "aim", "against"),
        *("cores", "cpu_mhz", "gpu_mhz", "emc_mhz", "slower_pct", "saved_pct"),
    ]
    rows = [
        ["simulated", "s", "agx_orin", "bert", "infer", "module", "least_energy_within_5", "maxn"],
        ["public", "x-5000", "tx1", "image", "infer", "module", "least_energy", "maxn"],
        ["public", "x-5000", "tx1", "image", "infer", "module", "maxn", "maxn"],
    ]
    with open(tmp_path / "tuning.csv", "w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([columns, *([*row, 4, 1, 2, 3, 4.5, 12.5] for row in rows)])
    stem = str(tmp_path / "tuning")
    with drawn_texts() as texts:
        draw_tuning(f"{stem}.csv", str(pytestconfig.rootpath / STYLE), str(tmp_path / "drawn"))
    assert_readable({"tuning": texts[next(iter(texts))]})
    left, right = next(iter(texts)).axes
    assert left.get_ylim() == right.get_ylim()  # one height is one saving, simulated or measured
    with open(tmp_path / "drawn.csv", newline="", encoding="utf-8") as handle:
        made = list(csv.DictReader(handle))
    assert [(row["provenance"], row["mode"]) for row in made] == [
        ("simulated", "bert, inference"),
        ("public", "TX1, 5,000 pictures"),
    ]
    text = " ".join((tmp_path / "drawn.txt").read_text().split())
    assert "with nothing predicted" in text
    assert "Simulated boards, and boards that others measured." in text
