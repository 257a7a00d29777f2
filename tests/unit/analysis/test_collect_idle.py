"""`results/tables/idle.csv`: mean power of what was measured, and what was read from a plug."""

import math

import pytest

from epochwatt import columns
from epochwatt.analysis.collect_idle import plug_rows, recorded_row, write_idle_table
from epochwatt.board.records import files
from epochwatt.board.records.samples import SampleWriter
from epochwatt.errors import ConfigError
from epochwatt.tables import read_cells

PLACE = {
    **{"backend": "fake", "device": "agx", "instance": "d1"},
    **{"power_mode": "f", "dvfs": "off"},
}
IDLE = {"id": "idle-fake-agx-d1-f", "place": PLACE}
START, END = 100.0, 160.0
SOUND = {"n_samples": 800, "n_negative": 0, "stuck_s": 0.0, "settings": {}}
MODULE = {"scope": "module", "total": "power_module_w", **SOUND}
HEADER = "device,instance,power_mode,state,power_w\n"
CELLS = ["agx", "d1", "f", "ii", "9.5"]


@pytest.fixture
def measured(tmp_path):
    """Return a function that writes a measurement: source -> what it is, and its power by time."""

    def write(idle=IDLE, board=None, events=None, **sources):
        folder = tmp_path / "measured" / idle["id"] / "idle"
        folder.mkdir(parents=True)
        record = {"t_start_mono_s": START, "t_end_mono_s": END, "board": board or {"busy_pct": 1.0}}
        record["events"] = {"before": {"throttle": 3}, "after": events or {"throttle": 3}}
        files.write_json(str(folder / "record.json"), record)
        told = {name: about for name, (about, _) in sources.items()}
        files.write_json(str(folder / "telemetry.json"), {"sources": told})
        for name, (about, power_w) in sources.items():
            writer = SampleWriter(str(folder), name, (about["total"] or "cpu_util_pct",))
            for tenth in range(900, 1700):
                writer.add(tenth / 10, 1.7e9, [power_w(tenth / 10)])
            writer.close()
        return str(tmp_path / "measured")

    return write


def inside(s):
    return 6.0 if START <= s <= END else 90.0


def ripple(s):
    return 5.0 + 0.1 * math.sin(7 * s)


RAMP = (MODULE, lambda s: 5.0 + (s - START) / 60 if s >= START else 99.0)
FAILING = (MODULE, lambda s: -0.04 if s == 120 else ripple(s))
GPU = ({"scope": "gpu", "total": "power_gpu_w", **SOUND}, lambda s: 3.0)
HOST = ({"scope": None, "total": None}, lambda s: 1.0)
# an AGX Xavier's rails have steps of 155 mW each: their sum looks finer than it is
STEPS = {"reads": "instant", "averaging_s": 0.0, "step_w": {"power_module_w": 0.155}}
COARSE = ({**MODULE, "settings": {"sensor": STEPS}}, lambda s: 5.0 + 0.002 * math.sin(7 * s))


@pytest.mark.parametrize(
    ("sources", "scope", "power_w"),
    [
        ({"sysfs": RAMP}, "module", 5.5),  # the mean between the bounds
        ({"sysfs": (MODULE, inside)}, "module", 6.0),
        ({"sysfs": FAILING}, "module", 5.0),  # a negative reading costs that reading
        ({"host": HOST, "nvml": GPU, "sysfs": (MODULE, lambda s: 8.0)}, "module", 8.0),  # widest
        ({"sysfs": (MODULE, lambda s: math.nan)}, "module", None),
        ({"sysfs": ({"scope": "module", "total": None}, inside)}, None, None),
    ],
)
def test_power_of_the_widest_scope_is_the_mean_between_the_bounds(
    sources, scope, power_w, measured
):
    row = recorded_row(measured(**sources), IDLE)
    assert row.get("power_scope") == scope
    assert row.get("power_w") == (None if power_w is None else pytest.approx(power_w, rel=0.01))
    assert (row["duration_s"], row["state"]) == (60.0, "i")
    assert {key: row[key] for key in PLACE} == PLACE


@pytest.mark.parametrize(
    ("source", "least_pct"), [((MODULE, ripple), 0.0), (COARSE, 100 * 0.155 / 5.0)]
)
def test_its_error_is_told_and_holds_the_sensors_steps(source, least_pct, measured):
    assert least_pct < recorded_row(measured(sysfs=source), IDLE)["power_error_pct"] < 10


@pytest.mark.parametrize(
    "fault",
    [
        {"board": {"busy_pct": 30.0}},
        {"events": {"throttle": 4}},
        {"about": {**MODULE, "settings": {"contradictions": 100}}},
    ],
)
def test_what_was_not_idle_or_not_its_power_is_an_empty_cell(fault, measured):
    others = {name: told for name, told in fault.items() if name != "about"}
    root = measured(sysfs=(fault.get("about", MODULE), lambda s: 5.0), **others)
    assert "power_w" not in recorded_row(root, IDLE)


class TestPlug:
    """What was entered by hand."""

    @pytest.fixture
    def plug(self, tmp_path):
        """Return a function that reads such a file."""

        def read(text):
            path = tmp_path / "idle_plug.csv"
            path.write_text(text, "utf-8")
            return plug_rows(str(path))

        return read

    def test_rows_are_those_of_a_meter_at_the_plug(self, plug):
        rows = plug(f"# by hand\n{HEADER}agx,d1,f,ii,9.5\n# asleep\nnx,d2,15W,iv,0\n")
        socket = {"backend": "jetson", "power_scope": "socket"}
        agx = {"device": "agx", "instance": "d1", "power_mode": "f", "state": "ii", "dvfs": "off"}
        nx = {"device": "nx", "instance": "d2", "power_mode": "15W", "state": "iv", "dvfs": ""}
        assert rows == [{**agx, **socket, "power_w": 9.5}, {**nx, **socket, "power_w": 0.0}]

    def test_of_the_shipped_file_and_of_none_there_are_none(self, tmp_path, pytestconfig):
        path = pytestconfig.rootpath / "config/idle_plug.csv"
        assert path.exists()
        assert plug_rows(str(path)) == plug_rows(str(tmp_path / "none.csv")) == []

    @pytest.mark.parametrize(
        ("cells", "problem", "found"),
        [
            *(
                (",".join([*CELLS[:n], "", *CELLS[n + 1 :]]), f"row 1: {name} is missing", None)
                for n, name in enumerate(HEADER.strip().split(","))
            ),
            ("agx,d1,f", "line 2 has more or fewer cells", None),
            *((f"agx,d1,f,{s},9.5", "unknown state", s) for s in ("i", "v", "II")),
            *(
                (f'agx,d1,f,ii,"{w}"', "power_w is not a power", w)
                for w in ("much", "-1", "nan", "inf", "9,5")
            ),
        ],
    )
    def test_a_row_that_cannot_be_is_refused(self, cells, problem, found, plug):
        with pytest.raises(ConfigError, match=problem) as caught:
            plug(f"{HEADER}{cells}\n")
        assert found in (None, caught.value.found)


@pytest.fixture
def table(tmp_path):
    """Return a function that writes the table and reads it as text."""

    def write(root, idles, plug="", path=tmp_path / "results" / "idle.csv"):
        entered = tmp_path / "idle_plug.csv"
        entered.write_text(HEADER + plug, "utf-8")
        write_idle_table([{**idle, "root": root} for idle in idles], str(entered), str(path))
        return read_cells(path)

    return write


def test_table_has_the_measured_ones_then_those_entered_by_hand(measured, table):
    other = {"id": "idle-other", "place": {**PLACE, "power_mode": "a"}}
    root = measured(sysfs=(MODULE, inside))
    measured(other, sysfs=(MODULE, lambda s: 3.0))
    rows = table(root, [other, IDLE], "agx,d1,f,ii,9.5\n")
    told = [(row["power_mode"], row["state"], round(float(row["power_w"]), 3)) for row in rows]
    assert told == [("a", "i", 3.0), ("f", "i", 6.0), ("f", "ii", 9.5)]
    assert tuple(rows[0]) == columns.names(columns.IDLE_COLUMNS)
