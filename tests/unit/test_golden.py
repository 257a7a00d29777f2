"""`make golden`: a simulated number that moved is seen, a measured one may move."""

import pytest

from tests.golden import __main__ as golden

ROWS = "run,backend,e2e_s,flags\na,host,3.25,\nb,twin,1.5,cold_process\nc,twin,2.5,\n"


@pytest.fixture
def compared(tmp_path, monkeypatch, capsys):
    """Return a function: freeze `ROWS`, compare an edited copy -> (status, lines)."""
    table = tmp_path / "results/tables/epochs.csv"
    table.parent.mkdir(parents=True)
    monkeypatch.setattr(golden, "FROZEN", tmp_path / "frozen.csv")

    def compare(old, new):
        for text, flags in ((ROWS, ["--update"]), (ROWS.replace(old, new), [])):
            table.write_text(text)
            monkeypatch.setattr("sys.argv", ["golden", str(tmp_path / "results"), *flags])
            status = golden.main()
        return status, capsys.readouterr().out

    return compare


@pytest.mark.parametrize(
    ("old", "new"), [("a,host,3.25", "z,host,9"), ("1.5,", "1.50000000001,"), ("1.5", "1.50")]
)
def test_measured_rows_and_the_tenth_digit_may_move(compared, old, new):
    assert compared(old, new)[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("1.5", "1.5001", "e2e_s: other values"),
        ("cold_process", "", "flags: other values"),
        ("c,twin,2.5,\n", "", "2 -> 1 rows"),
        ("e2e_s", "time_s", "column time_s is new"),
    ],
)
def test_what_moved_is_named(compared, old, new, told):
    status, out = compared(old, new)
    assert status == 1
    assert told in out
