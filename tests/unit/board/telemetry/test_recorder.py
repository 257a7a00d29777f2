"""The sampling loop against a simulated clock: rows, bounds, faults, the cap."""

import os
import threading
import time

import numpy as np
import pytest

from benchmarks.synthetic import SyntheticSource
from epochwatt.board.records.samples import read_samples
from epochwatt.board.telemetry import __main__ as process
from epochwatt.board.telemetry import channel
from epochwatt.board.telemetry.sampler import Recorder
from epochwatt.board.telemetry.source import Source


@pytest.fixture
def epoch(clock, folder):
    """Return a function that samples sources for some seconds; gives statistics and rows."""

    def run(*sources, seconds=10.0, seed=0):
        recorder = Recorder(list(sources), seed, clock, clock.wall)
        recorder.begin(folder)
        end_s = clock.t_s + seconds
        while clock.t_s < end_s:
            clock.sleep(min(recorder.step(), process.CHECK_S))
        statistics = recorder.end(folder)
        recorder.close()
        return statistics, {s.name: read_samples(folder, s.name) for s in sources}

    return run


@pytest.fixture
def signal(clock):
    """Return a function that makes a synthetic source on the simulated clock."""

    def make(**options):
        faults = options.pop("faults", None)
        return SyntheticSource(faults=faults, clock=clock, sleep=clock.sleep, **options)

    return make


def test_every_stratum_has_a_row_and_so_has_each_bound(epoch, signal, clock):
    start_s = clock.t_s
    statistics, rows = epoch(signal(rails=4), seconds=10.0)
    about = statistics["sources"]["synthetic"]
    t_s = rows["synthetic"]["t_mono_s"]
    assert about["n_samples"] == len(t_s)
    assert about["n_gaps"] == about["n_late"] == about["rows_dropped"] == 0
    assert t_s[0] == pytest.approx(start_s, abs=1e-3)
    assert t_s[-1] == pytest.approx(statistics["t_end_mono_s"], abs=1e-3)
    # strata count from the first row on; the last instant lies before the end, or is the one after
    counts, _ = np.histogram(t_s[1:-2], np.arange(t_s[0], t_s[-1] - 0.2, 0.1))
    assert set(counts) == {1}


def test_trapezoid_over_the_rows_gives_the_known_energy(epoch, signal, clock):
    source = signal()
    _, rows = epoch(source, seconds=600.0)
    t_s, power_w = rows["synthetic"]["t_mono_s"], rows["synthetic"]["power_total_w"]
    energy_j = float(np.sum(np.diff(t_s) * (power_w[1:] + power_w[:-1]) / 2))
    truth_j = source.energy_j(t_s[0], t_s[-1])
    assert energy_j == pytest.approx(truth_j, rel=0.0105)  # three times the rms of 0.35 %


@pytest.mark.parametrize("power", [(), (1.0,), (0.1,), (0.3,), (2.0, 0.1)])
def test_sources_that_measure_no_power_share_the_instants_of_the_fastest(epoch, signal, power):
    sources = [signal(name=name, period_s=1.0, scope=None) for name in ("host", "board")]
    sources += [signal(name=f"power{n}", period_s=period_s) for n, period_s in enumerate(power)]
    statistics, rows = epoch(*sources, seconds=60.0)
    t_s = {name: table["t_mono_s"][1:-1] for name, table in rows.items()}
    np.testing.assert_allclose(t_s["host"], t_s["board"], atol=1e-4)
    assert [about["n_gaps"] for about in statistics["sources"].values()] == [0] * len(sources)
    if power:
        fastest = t_s[f"power{power.index(min(power))}"]
        after_s = t_s["host"] - fastest[np.searchsorted(fastest, t_s["host"]) - 1]
        # power first; once in ten seconds the plan may end between the two
        assert np.quantile(after_s, 0.8) < 1e-4


@pytest.mark.parametrize(
    ("faults", "count", "least"),
    [
        ({"die_after": 20}, "n_failed", 50),
        ({"die_after": 20}, "n_gaps", 50),
        ({"die_after": 20}, "n_nan", 50),
        ({"error_every": 10}, "n_gaps", 8),
        ({"nan_after": 20}, "n_nan", 50),
        ({"negative_after": 20}, "n_negative", 50),
        ({"stuck_after": 20}, "stuck_s", 7.0),
        ({"hang_at": 20, "hang_s": 5.0}, "n_late", 40),
        ({"hang_at": 20, "hang_s": 5.0}, "n_gaps", 40),
        ({"hang_at": 20, "hang_s": 5.0}, "read_max_s", 5.0),
        ({"hang_at": 20, "hang_s": 5.0}, "step_max_s", 2.4),  # two stamps: the middle is one
    ],
)
def test_each_fault_of_a_sensor_shows_and_rows_go_on(epoch, signal, faults, count, least):
    healthy, _ = epoch(signal())
    assert healthy["sources"]["synthetic"][count] < least
    statistics, rows = epoch(signal(faults=faults))
    about = statistics["sources"]["synthetic"]
    assert about[count] >= least
    assert len(rows["synthetic"]["t_mono_s"]) == about["n_samples"] > 40


def test_rows_beyond_the_cap_are_thinned_then_dropped_and_counted(epoch, signal, monkeypatch):
    monkeypatch.setattr(channel, "FULL_ROWS", 50)
    monkeypatch.setattr(channel, "MAX_ROWS", 60)
    statistics, rows = epoch(signal(), seconds=40.0)
    t_s = rows["synthetic"]["t_mono_s"]
    about = statistics["sources"]["synthetic"]
    assert about["n_samples"] == len(t_s) == 60
    assert t_s[-1] - t_s[0] == pytest.approx(40.0, abs=1.1)  # the last row is always taken
    assert np.diff(t_s[50:59]).min() > 0.0
    assert np.diff(t_s[50:59]).mean() == pytest.approx(1.0, abs=0.25)
    # every instant of the full rate is a row or is counted, to a thinned stratum
    assert about["n_samples"] + about["rows_dropped"] == pytest.approx(400, abs=11)


def test_window_that_was_not_begun_or_not_ended_harms_no_other(signal, clock, folder):
    recorder = Recorder([signal()], 0, clock, clock.wall)
    with pytest.raises(FileNotFoundError):
        recorder.begin(folder + "/missing")
    recorder.begin(folder)
    recorder.begin(folder)
    assert recorder.end(folder)["sources"]["synthetic"]["n_samples"] == 2
    with pytest.raises(ValueError, match="no window was begun"):
        recorder.end(folder)


@pytest.mark.parametrize("seed", range(2))
def test_windows_that_overlap_have_each_the_rows_of_their_time(signal, clock, tmp_path, seed):
    """Opened and ended at drawn moments, as epochs, evaluations and phases of a training are."""
    rng = np.random.default_rng(seed)
    recorder = Recorder([signal(), signal(name="slow", period_s=1.0, scope=None)], seed, clock)
    begins, ends, bounds, told = {}, {}, {}, {}
    for n in range(8):
        folder = str(tmp_path / str(n))
        begins[folder] = clock.t_s + rng.uniform(0, 20)
        ends[folder] = begins[folder] + rng.uniform(1, 20)
        os.mkdir(folder)
    for moment_s, folder in sorted((t_s, f) for of in (begins, ends) for f, t_s in of.items()):
        while clock.t_s < moment_s:
            clock.sleep(min(recorder.step(), moment_s - clock.t_s + 1e-9))
        if folder in bounds:
            told[folder] = recorder.end(folder)["sources"]
            bounds[folder] += (clock.t_s,)
        else:
            bounds[folder] = (clock.t_s,)
            recorder.begin(folder)
    for folder, (begin_s, end_s) in bounds.items():
        for name, period_s in (("synthetic", 0.1), ("slow", 1.0)):
            t_s = read_samples(folder, name)["t_mono_s"]
            assert t_s[0] == pytest.approx(begin_s, abs=2e-3)
            assert t_s[-1] == pytest.approx(end_s, abs=2e-3)
            assert np.diff(t_s).max() <= 2 * period_s + 1e-3
            about = told[folder][name]
            assert about["n_samples"] == len(t_s)
            assert about["n_late"] == about["n_failed"] == about["rows_dropped"] == 0
            assert about["step_mean_s"] == pytest.approx(np.diff(t_s).mean(), rel=1e-3)


def test_what_fails_counts_in_the_windows_that_were_open(signal, clock, tmp_path):
    recorder = Recorder([signal(faults={"die_after": 20})], 0, clock, clock.wall)
    folders = [str(tmp_path / name) for name in ("whole", "healthy", "dead")]
    told = {}
    for folder in folders:
        os.mkdir(folder)
    recorder.begin(folders[0])
    for folder in folders[1:]:
        recorder.begin(folder)
        end_s = clock.t_s + 1.5
        while clock.t_s < end_s:
            clock.sleep(recorder.step())
        told[folder] = recorder.end(folder)["sources"]["synthetic"]["n_failed"]
        recorder.drop(folder)
        end_s = clock.t_s + 1.5
        while clock.t_s < end_s:
            clock.sleep(recorder.step())
    assert told[folders[1]] == 0
    assert told[folders[2]] >= 14
    assert recorder.end(folders[0])["sources"]["synthetic"]["n_failed"] > told[folders[2]] + 10


class Commands:
    """The sampler's commands and answers, without a process."""

    def __init__(self, recorder, parent):
        self.read_end, self.write_end = os.pipe()
        self.answers = []
        arguments = (recorder, self.read_end, self.answers.append, parent)
        self.thread = threading.Thread(target=process.serve, args=arguments)
        self.thread.start()

    def send(self, text):
        os.write(self.write_end, text)

    def finish(self):
        self.thread.join(10)
        alive = self.thread.is_alive()
        os.close(self.read_end)
        return not alive


@pytest.fixture
def commands(signal, clock):
    made = []

    def make(parent=None):
        recorder = Recorder([signal()], 0, clock, clock.wall)
        made.append(Commands(recorder, os.getppid() if parent is None else parent))
        return made[-1]

    yield make
    for each in made:
        os.close(each.write_end)


def test_commands_are_obeyed_in_order_however_they_are_cut(commands, folder):
    served = commands()
    place = folder.encode()
    served.send(b"end " + place + b"\nbegin " + place[:5])
    served.send(place[5:] + b"\nend " + place + b"\nwhat\nquit\n")
    assert served.finish()
    wrong, begun, ended, unknown = served.answers
    assert wrong == {"ok": False, "error": f"ValueError: no window was begun in {folder}"}
    assert begun["ok"]
    assert ended["statistics"]["sources"]["synthetic"]["n_samples"] == 2
    assert "no such command: b'what'" in unknown["error"]


class Hanging(Source):
    """A sensor that can be made not to answer."""

    name, columns, period_s = "hanging", ("a",), 0.01

    def __init__(self):
        self.answers = threading.Event()
        self.answers.set()

    def read(self):
        assert self.answers.wait(60.0)
        return [1.0]


class Quick(Source):
    name, columns, period_s, n = "quick", ("n",), 0.01, 0

    def read(self):
        self.n += 1
        return [self.n]


@pytest.fixture
def turns(monkeypatch):
    """A sampler of two sources that serves in two threads by turns: `Turns`."""

    class Turns:
        def __init__(self):
            monkeypatch.setattr(process, "HANG_S", 0.1)
            monkeypatch.setattr(process, "WATCH_S", 0.01)
            monkeypatch.setattr(os, "_exit", lambda code: self.exited.set())
            self.hanging, self.quick = Hanging(), Quick()
            self.recorder = Recorder([self.hanging, self.quick], 0)
            self.read_end, self.write_end = os.pipe()
            self.answers, self.exited = [], threading.Event()
            self.first = threading.Thread(
                target=process.in_turns, args=(self.recorder, self.work), daemon=True
            )
            self.first.start()

        def work(self):
            process.serve(self.recorder, self.read_end, self.answers.append, os.getppid())

        def ask(self, text):
            n = len(self.answers)
            os.write(self.write_end, text.encode() + b"\n")
            self.wait(lambda: len(self.answers) > n)
            return self.answers[-1]

        def wait(self, holds):
            end_s = time.monotonic() + 20.0
            while not holds():
                assert time.monotonic() < end_s
                time.sleep(0.005)

        def goes_on(self):
            n = self.quick.n
            self.wait(lambda: self.quick.n > n + 20)

        def hang(self):
            self.hanging.answers.clear()
            self.wait(lambda: self.recorder._hanging is not None)

    made = Turns()
    yield made
    made.hanging.answers.set()
    os.write(made.write_end, b"quit\n")
    made.first.join(10.0)
    assert not made.first.is_alive()
    for fd in (made.read_end, made.write_end):
        os.close(fd)


def test_source_that_hangs_stops_no_other(turns, folder, tmp_path):
    assert turns.ask("begin " + folder)["ok"]
    turns.goes_on()
    turns.hang()
    turns.goes_on()
    sources = turns.ask("end " + folder)["statistics"]["sources"]
    assert sources["hanging"]["error"] == "a reading hangs"
    assert sources["hanging"]["n_failed"] == 1
    assert sources["hanging"]["n_late"] > 10
    assert sources["quick"]["n_failed"] == 0
    rows = read_samples(folder, "quick")["n"]
    assert len(rows) == sources["quick"]["n_samples"] > 40
    assert len(read_samples(folder, "hanging")["a"]) == sources["hanging"]["n_samples"]
    # while it hangs an epoch is sampled without it
    (tmp_path / "second").mkdir()
    assert turns.ask(f"begin {tmp_path / 'second'}")["ok"]
    assert list(turns.ask(f"end {tmp_path / 'second'}")["statistics"]["sources"]) == ["quick"]


def test_process_ends_though_a_reading_hangs(turns, folder):
    assert turns.ask("begin " + folder)["ok"]
    turns.hang()
    os.write(turns.write_end, b"quit\n")
    assert turns.exited.wait(20.0)
