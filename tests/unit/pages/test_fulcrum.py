"""The landing page's section on Fulcrum: every number is its cell; only where it was made."""

from pathlib import Path

import pytest
from page_numbers import differing
from planted_page import plant

from epochwatt.claims.table_claims import TableClaimRow
from epochwatt.figures.fulcrum.names import gallery_entries
from epochwatt.pages.fulcrum_section import section
from epochwatt.schedule.summary import COLUMNS
from epochwatt.tables import write_table

ROW = dict.fromkeys(COLUMNS, "") | {
    **{"provenance": "simulated", "jobs": "train_and_infer", "solver": "gmd", "n_rows": "5"},
    **{"n_profiles": "29.5", "kept_pct": "90.31", "kept_least_pct": "80", "kept_most_pct": "100"},
    **{"loss_pct": "26.2", "loss_least_pct": "3", "loss_most_pct": "61", "late_pct": "8.46"},
    **{"kept_p99_pct": "61"},
}
UNPLAYED = ROW | {"jobs": "train", "solver": "physical_10_verified", "late_pct": ""}
CLAIM = dict.fromkeys(TableClaimRow._fields, "") | {
    **{"claim": "FC-C1", "provenance": "simulated", "status": "holds", "sentence": "a < b"},
    **{"section": "abstract", "paper_value": "> 97 %", "our_value": "kept = 100 %"},
}


@pytest.fixture
def paths(tmp_path):
    made = {
        "summary": (COLUMNS, [ROW, UNPLAYED, ROW | {"provenance": "public", "loss_pct": ""}]),
        "claims": (TableClaimRow._fields, [CLAIM, CLAIM | {"status": "does_not_hold"}]),
    }
    for name, (columns, rows) in made.items():
        cells = ([row[column] for column in columns] for row in rows)
        write_table(tmp_path / f"{name}.csv", name, columns, cells)
    return {name: str(tmp_path / f"{name}.csv") for name in made}


def test_the_landing_page_shows_the_study_where_it_was_made(checkout, paths, write_epochs):
    figure = gallery_entries(["results/figures/twin/fulcrum_power"])
    Path("results/figures/twin").mkdir(parents=True)
    Path("results/figures/twin/fulcrum_power.svg").write_text("<svg viewBox='0 0 9 9'></svg>")
    page = plant([], write_epochs, figures=figure, fulcrum=paths)
    assert differing(page, Path()) == []
    text = page.read_text("utf-8")
    assert '<section id="fulcrum">' in text
    assert text.count('data-column="kept_least_pct"') == 3
    assert text.count('data-column="kept_pct"') == 4  # in the key sentence, too
    assert "of 2 claims 1 hold, 1 do not" in text
    assert "&gt; 97 %" in text
    assert "Training beside a stream of requests, over power budgets" in text
    assert "one of inference takes and draws what one of training does" in text


def test_the_key_sentence_is_of_a_provenance_with_its_numbers(paths):
    shown = section(paths)
    (sentence,) = shown["sentences"]  # the public row has no loss
    text = "".join(piece if isinstance(piece, str) else piece.text for piece in sentence)
    assert text.startswith("Simulated boards, not measured: training beside inference, our")
    assert "answers 90.3 of the problems" in text
    assert "8.5 of requests are late" in text
    assert [row["solver"] for row in shown["rows"]][1] == "physical terms, verified"


def test_without_the_study_the_landing_page_does_not_mention_it(checkout, write_epochs):
    assert "Fulcrum" not in plant([], write_epochs).read_text("utf-8")
