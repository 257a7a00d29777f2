"""`epochwatt import`: planted energies by each tool's log, what is flagged, what is refused."""

import csv
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import signals
from epochwatt import cli, columns
from epochwatt.analysis.advice import advise
from epochwatt.analysis.collect_study import read_epochs, summarise_runs
from epochwatt.epochs.collect import collect_run
from epochwatt.errors import ConfigError, EpochwattError, RecordError
from epochwatt.power_logs import Options, import_power_log, read_rows
from epochwatt.study.imported import imported_runs

DATA = Path(__file__).parents[1] / "data/powerlogs"
T0 = 1_785_509_885.0  # 2026-07-31T14:58:05Z
UTC_TIMES = Options(timezone="+00:00")
TEGRASTATS = (DATA / "tegrastats.txt").read_text("utf-8").splitlines(keepends=True)
SMI = "timestamp, index, power.draw [W], utilization.gpu [%]\n"
CARBON = "timestamp,project_name,run_id,duration,emissions,cpu_energy,gpu_energy\n"


@pytest.fixture
def take(tmp_path):
    """Return a function that imports a log and epochs; it gives the rows of epochs.csv."""

    def call(log, epochs=((0.0, 30.0),), options=UTC_TIMES, shift_s=T0):
        path = tmp_path / "log.txt"
        path.write_text(log if isinstance(log, str) else "".join(log), "utf-8")
        bounds = tmp_path / "epochs.csv"
        rows = [f"{k},{a + shift_s},{b + shift_s}\n" for k, (a, b) in enumerate(epochs)]
        bounds.write_text("epoch,start,end\n" + "".join(rows))
        call.folder = tmp_path
        call.said = import_power_log(path, bounds, options, tmp_path)
        (run,) = imported_runs(tmp_path).values()
        assert run.studies == ("own",)
        tables = [tmp_path / "epochs_out.csv", tmp_path / "energy_out.csv"]
        measured = str(tmp_path / "measured")
        collect_run(measured, run.id, run.epochs, columns.FLAG_EFFECTS, *map(str, tables))
        with tables[0].open() as handle:
            return list(csv.DictReader(handle))

    return call


def smi(t_s, watts, gpu=0, load=99):
    """Return lines of nvidia-smi; a power of None is N/A."""
    lines = []
    for t, power in zip(t_s, watts, strict=True):
        stamp = datetime.fromtimestamp(T0 + t, UTC).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        lines.append(
            f"{stamp}, {gpu}, {'[N/A]' if power is None else f'{power:.2f} W'}, {load} %\n"
        )
    return lines


def joule(row):
    return float(row["energy_wh"]) * 3600.0


def test_recorded_rails_of_an_orin_are_added_once(take, tmp_path):
    text = (DATA / "agx_orin_rails.csv").read_text("utf-8")
    table = np.loadtxt(text.splitlines()[1:], delimiter=",")
    t_s, watts = table[:, 0], table[:, 1:4].sum(axis=1) / 1000.0  # the fourth is below the third
    bounds = [(t_s[100], t_s[300]), (t_s[300], t_s[700])]
    for options in (
        Options(board="agx_orin"),
        Options(board="agx_orin", start="2026-07-31T14:58:05Z"),
    ):
        rows = take(text, bounds, options, T0 if options.start else 0.0)
        for row, (first, last) in zip(rows, [(100, 300), (300, 700)], strict=True):
            truth_j = np.trapezoid(watts[first : last + 1], t_s[first : last + 1])
            assert joule(row) == pytest.approx(truth_j, rel=1e-3)
            assert (row["power_scope"], row["device"], row["imported"]) == (
                "module",
                "agx_orin",
                "rails",
            )
            assert {"imported", "power_sampling_regular", "stalls_not_placed"} <= set(
                row["flags"].split()
            )
            assert row["energy_error_pct"] == row["compute_s"] == row["stall_energy_j"] == ""
        for path in (tmp_path / "measured").iterdir():
            assert "VDDQ_VDD2_1V8AO" in (path / "epoch-0/telemetry.json").read_text()
            shutil.rmtree(path)


@pytest.mark.parametrize("unit", [" (mW)", "_w", " [W]"])
def test_units_are_those_of_the_names(unit, take):
    watts = 5.5 * (1000.0 if "m" in unit else 1.0)
    log = f"time,VDD_IN{unit}\n" + "".join(f"{T0 + t},{watts + t % 3 * 1e-4}\n" for t in range(40))
    (row,) = take(log, options=Options(board="orin_nx"))
    assert joule(row) == pytest.approx(165.0, rel=1e-3)


def test_tegrastats_is_read_as_its_recorded_lines_are(take):
    rows = take(TEGRASTATS, [(1.0, 5.0), (7.0, 11.0), (40.0, 50.0)])
    assert joule(rows[0]) == pytest.approx(4 * 9.303, rel=1e-3)
    assert joule(rows[1]) == pytest.approx(4 * 14.009, rel=1e-3)
    assert "sampler_lost" in rows[2]["flags"]
    assert rows[2]["energy_wh"] == ""
    assert take.said[1].startswith("  epoch 0: 4.00 s; 10.3 mWh (module); ")


LOGS = {  # steps and averaging, s (None: a counter), options, first line, form of the others
    "nvidia-smi": (
        1,
        1,
        {},
        SMI.replace("draw", "draw.average"),
        "{t:%Y/%m/%d %T.%f}, 0, {w} W, 9",
    ),
    "meter": (1, 1, {"board": "orin_nx", "averaging_s": 1}, "time,VDD_IN_w\n", "{t},{w}"),
    "tegrastats": (
        *(1, 1, {"board": "orin_nx", "averaging_s": 1}, ""),
        "{t:%m-%d-%Y %T} RAM 4714/6285MB (lfb 7x4MB) VDD_IN {mw:.0f}mW/0mW",
    ),
    "mlperf": (
        *(2, 2, {"averaging_s": 2}, ':::MLLOG {"time_ms": 1, "key": "power_measurement_start"}\n'),
        ':::MLLOG {{"time_ms": {ms:.0f}, "key": "power_reading", "value": {w}}}',
    ),
    "codecarbon": (5, None, {}, CARBON, "{t:%Y-%m-%dT%T},codecarbon,11,1.2,0,0,{kwh}"),
    "instants at random": (0.1, 0, {"board": "orin_nx"}, "time,VDD_IN_w\n", "{t},{w}"),
}


@pytest.mark.parametrize("log", LOGS)
def test_bounds_hold_the_truth_of_drawn_signals(log, take):
    """34 epochs of each log; stamps are some milliseconds late."""
    step_s, mean_s, options, head, form = LOGS[log]
    random = np.random.default_rng(sum(map(ord, log)))
    held, widths_pct = [], []
    for name in [*signals.LOOPS, *signals.LOOPS_AND_MORE, *signals.OTHERS][:17]:
        signal = signals.draw(name, random, random.uniform(40, 60))
        t_s = np.arange(signal.start_s - 6, signal.end_s + 6, step_s) + step_s * random.random()
        t_s = t_s + (step_s * random.random(t_s.size) if mean_s == 0 else 0)
        watts = signal.mean(t_s, mean_s) if mean_s else signal.at(t_s)
        kwh = (signal.integral(t_s) - signal.integral(t_s[:1] - 1)) / 3.6e6
        late_s = t_s + np.abs(random.normal(0, 0.003, t_s.size)) * (mean_s != 0)
        lines = [
            form.format(
                t=datetime.fromtimestamp(T0 + t, UTC), ms=1e3 * (T0 + t), w=w, mw=1e3 * w, kwh=j
            )
            for t, w, j in zip(late_s, watts, kwh, strict=True)
        ]
        middle_s = signal.start_s + (signal.end_s - signal.start_s) * random.uniform(0.35, 0.65)
        epochs = [(signal.start_s, middle_s), (middle_s, signal.end_s)]
        rows = take(head + "\n".join(lines) + "\n", epochs, Options(timezone="+00:00", **options))
        shutil.rmtree(take.folder / "measured")
        for row, bounds_s in zip(rows, epochs, strict=True):
            if row["energy_error_pct"]:
                truth_j = np.diff(signal.integral(np.array(bounds_s)))[0]
                widths_pct.append(float(row["energy_error_pct"]))
                held.append(abs(joule(row) - truth_j) <= widths_pct[-1] / 100 * joule(row))
    assert len(held) >= 28
    assert np.mean(held) >= 0.95
    assert np.median(widths_pct) < (12 if mean_s else 40)


def test_readings_that_may_keep_to_the_mini_batches_have_no_bound(take):
    (row,) = take([SMI, *smi(range(-2, 33), [100.0 + k % 7 for k in range(35)])])
    assert joule(row) == pytest.approx(30 * 103, rel=0.02)
    assert row["energy_error_pct"] == ""
    assert "power_sampling_regular" in row["flags"]


def test_gpus_that_trained_are_added_and_failed_readings_bridged(take):
    watts = [None if k == 20 else 100.0 + k % 5 for k in range(35)]
    lines = zip(
        smi(np.arange(-2, 33) + 0.25, watts), smi(np.arange(-2, 33) + 0.251, watts, 1), strict=True
    )
    log = [SMI, *(line for pair in lines for line in pair)]
    with pytest.raises(ConfigError, match="which GPUs") as raised:
        take(log)
    assert raised.value.found == ["0", "1"]
    (row,) = take(log, options=Options(timezone="Etc/UTC", gpus=(0, 1)))
    assert joule(row) == pytest.approx(2 * 30 * 102, rel=0.01)
    assert "sampler_gap" in row["flags"]


def test_node_of_mlperf_and_the_log_of_its_training(tmp_path):
    log, training = DATA / "mlperf_node.txt", DATA / "mlperf_training.txt"
    said = import_power_log(log, training, Options(), tmp_path)
    readings = re.findall(r'"time_ms": (\d+),.*"power_reading", "value": (\d+)', log.read_text())
    t_s, watts = np.array(readings, float).T / [[1000.0], [1.0]]
    moments = re.findall(r'"time_ms": (\d+),.*"epoch_st', training.read_text())
    bounds_s = np.array(moments, float)[:8].reshape(4, 2) / 1000.0
    (run,) = imported_runs(tmp_path).values()
    assert run.epochs == 4
    for k, (start_s, end_s) in enumerate(bounds_s):
        inside = np.linspace(start_s, end_s, 10001)
        truth_j = np.trapezoid(np.interp(inside, t_s, watts), inside)
        told = re.search(rf"epoch {k}: ([\d.]+) s; ([\d.]+) Wh \(socket\); ", "\n".join(said))
        assert float(told[1]) == pytest.approx(end_s - start_s, abs=0.01)
        assert float(told[2]) == pytest.approx(truth_j / 3600.0, rel=0.01)


def carbon(counted):
    """Return emissions.csv with (s, kWh of the GPU) a row; the CPU's is an estimate."""
    lines = [CARBON]
    for t, kwh in counted:
        stamp = datetime.fromtimestamp(T0 + t, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        lines.append(f"{stamp},codecarbon,11,{t + 0.4},0.0012,{t * 1e-5},{kwh}\n")
    return lines


def test_codecarbon_is_a_counter_of_the_gpu(take, tmp_path):
    watts = 200.0 + 50.0 * np.sin(np.arange(60))
    energy_j = np.cumsum(watts) * 10
    log = carbon((10.0 * (k + 1), j / 3.6e6) for k, j in enumerate(energy_j))
    (row,) = take(log, [(100.0, 400.0)])
    truth_j = energy_j[39] - energy_j[9]
    assert abs(joule(row) - truth_j) <= float(row["energy_error_pct"]) / 100 * joule(row)
    assert float(row["energy_error_pct"]) < 8
    assert (row["power_scope"], row["energy_method"]) == ("gpu", "counter")


def test_a_single_row_of_codecarbon_and_an_estimate_of_a_cpu(take):
    log = (DATA / "codecarbon.csv").read_text("utf-8")
    at_s = datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp()
    with pytest.raises(RecordError, match="no energy of a GPU") as raised:
        take(log, [(-400.0, -100.0)], shift_s=at_s)
    assert "RAPL" in raised.value.do
    options = Options(timezone="+00:00", cpu=True)
    (row,) = take(log, [(-400.0, -100.0)], options, at_s)
    assert joule(row) == pytest.approx(0.004867 * 3.6e6 * 300 / 412, rel=0.01)
    assert row["energy_error_pct"] == "" or float(row["energy_error_pct"]) > 50


@pytest.mark.parametrize(
    ("log", "epochs", "options", "says"),
    [
        ("", None, {}, "the log is empty"),
        ("hello\nworld\n", None, {}, "no power log of a known form"),
        (SMI, None, {}, "has no reading"),
        ([SMI, "2026/07/31 14:58:05.000, 0, 55.7 W, 15 %\n", "@@\n", "x\n"], None, {}, "line 3"),
        ([SMI, "2026/07/31 14:58:05.000, 0, oops, 15 %\n"], None, {}, "is not a number"),
        ([SMI, "yesterday, 0, 55.7 W, 15 %\n"], None, {}, "no time"),
        ([*TEGRASTATS[:4], "07-31-2026 14:58:09 RAM 47\n", *TEGRASTATS[5:]], None, {}, "line 5"),
        ([*TEGRASTATS[6:], *TEGRASTATS[:6]], None, {}, "run backward"),
        ([line.partition("RAM")[2].join(["RAM", ""]) for line in TEGRASTATS], None, {}, "ts %.s"),
        (TEGRASTATS, ((7200.0, 7300.0),), {}, "no epoch lies in the log"),
        (TEGRASTATS, ((1.0, 5.0), (4.0, 9.0)), {}, "epochs overlap"),
        (TEGRASTATS, ((5.0, 5.0),), {}, "ends before it starts"),
        (TEGRASTATS, (), {}, "no epochs"),
        (TEGRASTATS, None, {"board": "tx2"}, "no board is called tx2"),
        (TEGRASTATS, None, {"board": "orin_nx"}, "do not make up"),
        (TEGRASTATS, None, {"timezone": "Mars"}, "no time zone Mars"),
        ("time,VDD_IN\n1,5\n2,6\n", None, {}, "fit no single board"),
        ("2026-07-31 14:58:05,5.1\n", None, {}, "no power log of a known form"),
        ("time,w\n07/31/2026 14:58:05,5\n", None, {"meter": "w"}, "no time"),
        ("time,w\n0001-01-01,5\n", None, {"meter": "w"}, "no time"),
        ("Date,today\nNo.,7\ntime,w\ns,W\n1,5\n", None, {"meter": "w"}, "line 4"),
        ("time,w\n1,5\n2,6\n", None, {"meter": "power"}, "no column power"),
        (TEGRASTATS, None, {"meter": "w"}, "not of a meter"),
        ("time,GPU+SOC,CPU+CV\n1,5,5\n2,6,6\n", None, {}, "some rails hang below others"),
        ([SMI, *smi(range(9), range(9))], None, {"board": "nano"}, "has no rails"),
    ],
)
def test_what_cannot_be_right_is_refused_and_leaves_nothing(
    log, epochs, options, says, take, tmp_path
):
    told = Options(**{"timezone": "+00:00", **options})
    with pytest.raises(EpochwattError) as raised:
        take(log, ((0.0, 10.0),) if epochs is None else epochs, told)
    assert says in str(raised.value)
    assert raised.value.allowed or raised.value.found or raised.value.do
    assert not list((tmp_path / "measured").glob("*"))


def test_a_cut_last_line_is_left_out(take):
    (row,) = take("".join(TEGRASTATS)[:-30], [(1.0, 9.0)])
    assert joule(row) > 0
    assert "no end and is left out" in take.said[-1]


def test_command_takes_json_lines_and_counts_from_0(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("config").mkdir()
    Path("epochs.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "epoch": k + 1,
                    "start": f"2026-07-31T14:58:{5 + 5 * k:02}Z",
                    "end": T0 + 5 * k + 5,
                }
            )
            + "\n"
            for k in range(2)
        )
    )
    words = [
        "import",
        str(DATA / "tegrastats.txt"),
        "--epochs",
        "epochs.jsonl",
        "--timezone",
        "+00:00",
    ]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert "epoch 1: 5.00 s" in out
    assert "is epoch 0 here" in out
    assert cli.main(words) == 0  # again: the same run
    Path("epochs.jsonl").write_text('{"epoch": 0, "start": 1785509886, "end": 1785509890}\n')
    assert cli.main(words) == 1
    assert "imported from other files" in capsys.readouterr().err
    (run,) = imported_runs().values()
    assert run.epochs == 2


@pytest.mark.parametrize(
    ("header", "stamp", "column"),
    [
        ("time;Leistung (W);Spannung (V)", "%d.%m.%Y %H:%M:%S;{},0;229,5", "Leistung (W)"),
        ("# meter no. 7\n\nDate,Time,power_mw", "%Y-%m-%d,%H:%M:%S,{}000", "power_mw"),
        ("timestamp\tP [kW]", "%Y-%m-%dT%H:%M:%S\t0.0{}", "P [kW]"),
        (
            "MODEL,PW3335\nDATE,2026-07-31\nTIME,14:58:05\n\nDATE,TIME,STATUS,P[W],",
            "%Y/%m/%d,%H:%M:%S,0,{}.0,",
            "P[W]",
        ),
        (
            "Date;31.07.2026;14:58\nTime zone;UTC\nSerial no.;7\nTime;Wirkleistung [W]",
            "%d.%m.%Y %H:%M:%S;{},0",
            "Wirkleistung [W]",
        ),
        ("Timestamp,first,last\nTime stamp of,P,U\ntime,power_w,u", "%s,{},230", "power_w"),
    ],
)
def test_meter_of_a_stranger_is_read(header, stamp, column, take):
    times = [datetime.fromtimestamp(T0 + k, UTC) for k in range(40)]
    lines = [t.strftime(stamp).format(12 if k < 20 else 15) for k, t in enumerate(times)]
    options = Options(timezone="+00:00", meter=column)
    rows = take("\n".join([header, *lines, ""]), [(2.0, 18.0), (22.0, 38.0)], options)
    assert [joule(row) for row in rows] == pytest.approx([16 * 12, 16 * 15], rel=0.01)
    assert {row["power_scope"] for row in rows} == {"socket"}


PREAMBLE = st.tuples(
    st.sampled_from(
        [
            *("Date", "TIME", "Timestamp", "# Date of calibration", "t_last", "date/time"),
            *("Model", "Serial no.", "Interval [s]", "nvidia-smi --query-gpu=power.draw"),
        ]
    ),
    st.lists(st.text('0123456789-:./ W"#', max_size=12), max_size=3),
)


@given(
    st.lists(PREAMBLE, max_size=19),
    st.sampled_from(",;\t"),
    st.sampled_from([(["time"], "%s"), (["Timestamp"], "%Y-%m-%d %T"), (["Date", "Time"], "%x")]),
)
def test_header_is_the_line_that_the_readings_fit(preamble, separator, times):
    names, form = times
    form = form.replace("%x", f"%d.%m.%Y{separator}%T")
    header = [*names, "P [W]", "U [V]"]
    lines = [separator.join([key, *values]) for key, values in preamble]
    lines.append(separator.join(header))
    for k in range(3):
        moment = datetime.fromtimestamp(T0 + k, UTC).strftime(form)
        lines.append(separator.join([moment, f"{k}", "230"]))
    with TemporaryDirectory() as folder:
        path = Path(folder, "log.csv")
        path.write_text("\n".join([*lines, ""]), "utf-8")
        _, frame, warnings = read_rows(path)
    assert list(frame.columns) == header
    assert list(frame["P [W]"]) == ["0", "1", "2"]
    assert len(warnings) == bool(preamble)


def test_tables_of_a_study_take_it(take, tmp_path):
    rows = take(TEGRASTATS, [(0.0, 5.0), (5.0, 11.0)])
    assert all(row["valid"].lower() == "true" for row in rows)
    epochs = read_epochs([str(tmp_path / "epochs_out.csv")])
    table = summarise_runs(epochs, {})
    assert set(table.run) == {rows[0]["run"]}
    (advice,) = advise(epochs)
    assert advice.bound_by == ""
    assert "start and end" in advice.reason
