"""Rule collect_idle: idle powers from a plug meter, entered by hand, become rows of the table."""

import csv
from pathlib import Path

TABLE = "results/tables/idle.csv"
HEADER = "# read on a Tuesday\ndevice,instance,power_mode,state,power_w\n"


def test_entered_powers_are_rows_of_scope_socket(checkout, run_rule):
    Path("config/idle_plug.csv").write_text(HEADER + "agx,d1,g,iii,9.5\n", encoding="utf-8")
    run_rule("collect_idle", TABLE)
    with open(TABLE, newline="", encoding="utf-8") as handle:
        (row,) = csv.DictReader(handle)
    assert (row["device"], row["state"], row["power_scope"]) == ("agx", "iii", "socket")
    assert float(row["power_w"]) == 9.5
    assert row["power_error_pct"] == ""


def test_state_that_the_board_measures_itself_is_refused(checkout, run_rule):
    Path("config/idle_plug.csv").write_text(HEADER + "agx,d1,g,i,7.5\n", encoding="utf-8")
    output = run_rule("collect_idle", TABLE, status=1)
    assert "config/idle_plug.csv, row 1: unknown state" in output
    assert "found: i" in output
    assert not Path(TABLE).exists()
