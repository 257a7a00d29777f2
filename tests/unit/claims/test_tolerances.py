"""config/claims.yaml."""

import shutil

import pytest

from epochwatt.claims.tolerances import TERMS, load_terms
from epochwatt.errors import ConfigError


@pytest.fixture
def checkout(tmp_path, request):
    root = request.path.parents[3]
    (tmp_path / "config").mkdir()
    shutil.copy(root / TERMS, tmp_path / TERMS)
    return tmp_path


def test_every_name_of_a_predicate_has_one_meaning(terms):
    names = [*terms.words, *terms.sets, *terms.tolerances]
    assert len(names) == len(set(names))
    assert terms.constants()["agx"] == "agx"
    assert terms.constants()["off"] == "off"
    assert terms.constants()["NEAR"] == 15.0
    assert [name for name in terms.tolerances if terms.is_slack(name)] == [
        name for name in terms.tolerances if name.startswith("EPS")
    ]


def test_pairs_of_a_set_compare_as_those_of_a_predicate(terms):
    assert ("agx", "mobilenet") in terms.sets["COMBOS"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("words:", "wrods:", "wrods"),
        ("value: 15, unit", "value: much, unit", "much"),
        ("unit: points, ", "", "unit"),
    ],
)
def test_wrong_terms_are_refused(checkout, old, new, told):
    path = checkout / TERMS
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=rf"(?s){TERMS}.*{told}"):
        load_terms(checkout)
