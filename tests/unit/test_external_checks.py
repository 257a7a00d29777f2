"""Checks against others' measurements: what the checkout holds gives the rows of the page."""

import csv

import pytest

from benchmarks.external import Inputs
from benchmarks.external.__main__ import COLUMNS, FOLDER, REPOSITORY, TABLES, rows
from benchmarks.external.training_logs import RUNS, read_log
from epochwatt.twin.power_modes import load_twin_with_modes


@pytest.fixture(scope="module")
def inputs(network_counts):
    paths = [network_counts(model) for model in ("lenet", "mobilenet", "resnet")]
    return Inputs(REPOSITORY, None, load_twin_with_modes(paths, REPOSITORY))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_what_is_here_gives_the_rows_of_the_page_and_the_rest_says_so(name, inputs):
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        header, *kept = map(tuple, csv.reader(file))
    assert header == COLUMNS
    made = rows(TABLES[name], inputs)
    missing = [row for row in made if row[4] == "not available"]
    assert all("EPOCHWATT_PUBLIC_DATA" in row[5] for row in missing)
    assert [row for row in made if row not in missing and row not in kept] == []
    assert missing or made == kept


def test_a_log_of_tegrastats_is_read_by_our_parser_between_two_lines(tmp_path):
    line = "RAM 1/2MB VDD_GPU_SOC {0}mW/{0}mW VDD_CPU_CV 1000mW/1000mW VIN_SYS_5V0 2000mW/2000mW"
    log = tmp_path / f"{RUNS[0].run}.txt"
    stamped = [f"11-21-2025 08:49:{40 + k} {line.format(1000 * k)}" for k in range(6)]
    log.write_text("\n".join(["11-21-2025", *stamped]), "utf-8")
    readings = read_log(log, 1, 4)
    assert readings.rails_w["VDD_GPU_SOC"].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert readings.module_w.tolist() == [4.0, 5.0, 6.0, 7.0]
    assert readings.integral_w == pytest.approx(5.5)
