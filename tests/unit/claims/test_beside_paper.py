"""The paper's numbers with ours beside them: medians over draws, of what is meant alone."""

from pathlib import Path

import pytest

from epochwatt.claims.beside_paper import beside
from epochwatt.errors import ConfigError
from epochwatt.figures.powertrain import looks
from epochwatt.prediction.transfer.names import TABLES as WRITTEN
from epochwatt.published.numbers import PaperNumber, load_paper_numbers

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = ROOT / "config/published/powertrain/numbers.csv"
TRIAL = {"provenance": "simulated", "group": "a", "reference": "r", "workload": "w"}
TRIAL |= {"device": "orin", "method": "powertrain", "n_profiled": "50", "target": "time_s"}


def number(**cells):
    texts = dict.fromkeys(PaperNumber.__dataclass_fields__, "") | TRIAL
    texts.pop("provenance")
    texts |= {"id": "N1", "exactness": "printed", "statistic": "mape_pct", "unit": "%"}
    return PaperNumber(**texts | {"value": 12.0, "qualifier": "exact"} | cells)


def errors(*values, **cells):
    return [TRIAL | {"draw": str(n), "mape_pct": v} | cells for n, v in enumerate(values)]


def test_ours_is_the_median_over_draws_with_its_quartiles():
    (pair,) = beside([number()], {"errors": errors("9", "10", "14")})
    assert (pair.published, pair.ours, pair.low, pair.high, pair.n_draws) == (
        *("12", "10", "9.5", "12", "3"),
    )
    assert (pair.provenance, pair.missing) == ("simulated", "")


@pytest.mark.parametrize(
    ("asked", "other", "missing"),
    [
        *(
            ({}, other, "no row of ours")
            for other in (
                *({"workload": "v"}, {"method": "physical"}, {"n_profiled": "10"}),
                *({"target": "power_w"}, {"reference": "s"}, {"mape_pct": "nan"}),
            )
        ),
        ({"workload": ""}, {}, "no workload of ours on this board"),
    ],
)
def test_nothing_else_stands_beside_it(asked, other, missing):
    (pair,) = beside([number(**asked)], {"errors": errors("9", **other)})
    assert (pair.ours, pair.provenance, pair.missing) == ("", "", missing)


def test_the_projects_numbers_name_columns_methods_and_workloads_that_are_there():
    numbers = load_paper_numbers(NUMBERS)
    assert len(numbers) == 79
    columns = {name for names in WRITTEN.values() for name in names}
    assert {number.statistic for number in numbers} <= columns
    assert {number.method for number in numbers} <= set(looks.METHODS)
    assert {number.workload for number in numbers} <= {"", *looks.WORKLOADS}
    headline = [number.text for number in numbers if number.group == "headline"]
    assert headline == ["< 15", "< 6", "< 14.5", "< 11"]


def test_a_wrong_number_says_where(tmp_path):
    path = tmp_path / "numbers.csv"
    head, first = NUMBERS.read_text("utf-8").splitlines()[:2]
    path.write_text(f"{head}\n{first}\n{first}\n")
    with pytest.raises(ConfigError, match="is there twice"):
        load_paper_numbers(path)
    path.write_text(f"{head}\n{first.replace('printed', 'guessed')}\n")
    with pytest.raises(ConfigError, match="exactness is 'guessed'"):
        load_paper_numbers(path)
