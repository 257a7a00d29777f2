"""What others disturbed is discarded when the machine is quiet, and nothing else ever is."""

from pathlib import Path

import pytest

from epochwatt import columns
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.maintenance import shared
from epochwatt.roofline.ceilings import CeilingRow, write_ceilings
from epochwatt.roofline.wanted import wanted_ceilings
from epochwatt.sweeps.table import SweepTable

SHARED = {"flags": {"machine_shared"}}


@pytest.fixture
def machine(monkeypatch):
    """A machine of which others take 2 % of the CPUs, unless a test says otherwise."""

    class Quiet:
        others_pct = 2.0

        def busy_pct(self, over_s):
            return self.others_pct

    quiet = Quiet()
    monkeypatch.setattr(shared, "open_machine", lambda settings: quiet)
    return quiet


@pytest.fixture
def runs(checkout, measure, write_epochs):
    """A short run that others disturbed, a long one, and one that nobody disturbed."""
    checkout.sweep({"num_workers": [0, 1, 2], "torch_threads": 1}, ceilings=True, epochs=1)
    runs = checkout.runs
    for run, epoch in zip(runs, [SHARED, {**SHARED, "e2e_s": 100.0}, {}], strict=True):
        measure(run, 0)
        write_epochs(run.id, run.factors, epoch)
    return runs


@pytest.fixture
def ceilings(checkout, runs):
    """The id of ceilings that others disturbed, in one mode that took 11 s."""
    (job,) = wanted_ceilings(checkout.settings(), SweepTable()).values()
    kernel = {"kernel": "copy", "precision": "fp32", "size": 8, "flops": 0.0, "bytes": 64.0}
    times = {"way": "", "n_calls": 1, "start_s": 1.0, "end_s": 2.0, "blocks_s": [1.0], "n_power": 0}
    meta = {
        **{
            "schema_version": columns.SCHEMA_VERSION,
            "ceilings": job.id,
            "mode": job.settings[0],
            "backend": "host",
        },
        **{"processor": "cpu", "t_start_unix_s": 1.75e9, "t_start_mono_s": 1.0},
        **{"t_end_mono_s": 12.0, "flags": [], "events": {"before": {}, "after": {}}},
        **{"telemetry_lost": False, "kernels": [{**kernel, **times}]},
    }
    folder = CeilingFolder("measured", job.id)
    folder.open_attempt(job.settings[0])
    folder.finish(job.settings[0], meta)
    place = {"provenance": "measured", "device": "host", "instance": "local", "processor": "cpu"}
    row = CeilingRow(**place, **kernel, repeats=1, time_s=1.0, best_s=1.0, flags="machine_shared")
    shared.CEILINGS.parent.mkdir(parents=True, exist_ok=True)
    write_ceilings(shared.CEILINGS, [row])
    return job.id


def there():
    return {path.name for path in Path("measured").iterdir() if not path.name.startswith(".")}


def test_what_is_short_is_measured_again_on_a_quiet_machine(machine, runs, ceilings):
    short, long, alone = runs
    told = "\n".join(shared.discard_shared(60.0))
    assert there() == {long.id, alone.id}
    assert {path.name for path in Path("measured/.trash").glob("*/*")} == {short.id, ceilings}
    assert short.id in told
    assert ceilings in told
    assert "epochwatt discard --shared" in told  # the long one


def test_nothing_is_moved_while_others_use_the_machine(machine, runs, ceilings):
    machine.others_pct = 60.0
    before = there()
    (line,) = shared.discard_shared(60.0)
    assert there() == before
    assert "2 runs and ceilings were measured while others used the machine" in line


def test_where_nobody_disturbed_there_is_nothing_to_say(machine, checkout, measure, write_epochs):
    (run, *_) = checkout.runs
    measure(run, 0)
    write_epochs(run.id, run.factors, {})
    assert shared.discard_shared(60.0) == []
    assert there() == {run.id}
