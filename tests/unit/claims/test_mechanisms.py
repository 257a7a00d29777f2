"""What carries each claim on simulated boards."""

import pytest

from epochwatt.claims.mechanisms import FILE, load_mechanisms, weakest
from epochwatt.errors import ConfigError

HEAD = "claims,mechanisms,rests_on,lacks,contradiction\n"


@pytest.fixture
def loaded(tmp_path, claim):
    """Return a function that loads a table of one claim, T of take-away 5."""

    def load(lines):
        (tmp_path / FILE).write_text(HEAD + lines)
        return load_mechanisms(tmp_path, [claim("1 < 2")._replace(takeaway="5")])

    return load


def test_the_table_tells_of_every_claim_and_says_why_a_core_one_may_fail(claims, request):
    found = load_mechanisms(request.config.rootpath / "config/twin", list(claims.values()))
    assert found.keys() == claims.keys()
    assert [name for name, c in claims.items() if c.role == "core" and not found[name].why] == []


def test_what_is_put_in_by_hand_or_assumed_is_marked(claims, request):
    found = load_mechanisms(request.config.rootpath / "config/twin", list(claims.values()))
    assumed = {claims[name].takeaway for name, one in found.items() if one.rests_on == "assumed"}
    assert assumed >= {"5.4.1", "5.4.2", "5.4.3", "5.1.7-orin", "5.6-baseload", "5.5.1", "5.5.2"}


def test_a_line_about_a_claim_counts_before_that_of_its_takeaway(loaded):
    assert (
        loaded("5,a,mechanism,x,\nT,b,fitted,y,z\n")["T"].why
        == "the simulation lacks: y; the paper disagrees: z"
    )
    assert loaded("5,a,mechanism,x,\n")["T"].why == "the simulation lacks: x"
    assert loaded("5,a,mechanism,,\n")["T"].why == ""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("5,a,hope,x,\n", "(?s)line 2: not a row.*rests_on: mechanism, fitted, assumed"),
        ("6,a,fitted,x,\n", "a line for '6'"),
        ("", "no line for T"),
    ],
)
def test_a_wrong_table_is_refused(loaded, lines, told):
    with pytest.raises(ConfigError, match=told):
        loaded(lines)


def test_the_weakest_evidence_counts():
    assert weakest("fitted", "mechanism", "assumed") == "assumed"
    assert weakest("mechanism", "mechanism") == "mechanism"
