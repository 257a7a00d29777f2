"""What stands beside a picture: verdicts of claims, captions, notes; what is red."""

import csv

import pytest
from matplotlib.colors import same_color

from epochwatt.claims.claims_table import ComparisonRow, write_comparisons
from epochwatt.errors import ConfigError
from epochwatt.figures.common.job import MOST_ENTRIES
from epochwatt.figures.draw_figure import draw_figure

FAILS = "does_not_hold"
RED = "red: ours is over 15 % off (percentages: 3 points)"
CHANGE = "-5.4 %, here -5.0 %"
ROW = {
    "claim": "T5.1.7b", "takeaway": "5.1.7", "paper": "sigmetrics2023", "role": "quant",
    "claim_text": "What four workers save", "backend": "twin", "form": "paper", "board": "",
    "status": FAILS, "verdict": FAILS, "subject": "AGX Xavier, LeNet-5", "tolerance": "3 points",
    "published_id": "RS5.1.7-01", "published": "-5.4 %", "here": "-5.0 %",
    "in_words": f"published {CHANGE}",
}  # fmt: skip


def row(**changes):
    return ComparisonRow(**{**ROW, **changes})


@pytest.fixture
def drawn(job_of, made_up, tmp_path):
    """Return a function that draws figure 2 with some comparisons; it gives the job."""

    def draw(*comparisons, later_wh=1.9, **changes):
        path = str(tmp_path / "comparisons.csv")
        write_comparisons(path, comparisons)
        hdd = {"storage": "hdd", "setup": "sigmetrics2023"}
        runs = [
            made_up(
                {}, {"energy_paper_wh": wh}, num_workers=w, prefetch_factor=2 if w else None, **hdd
            )
            for w, wh in ((0, 2.0), (4, later_wh))
        ]
        job = job_of("fig02", *runs, **{"comparisons": path, **changes})
        draw_figure(job)
        return job

    return draw


def texts(job, panel="fig02c"):
    return {" ".join(text.get_text().split()): text for text, _, _ in job.saved[panel]}


def test_what_fails_is_red_by_its_id_and_told_in_a_line_a_table_and_the_caption(drawn, tmp_path):
    order = {"claim": "T5.1.7a", "role": "core", "published_id": "", "claim_text": "Workers save"}
    job = drawn(row(), row(**order, in_words="published as less, here more"))
    found = texts(job)
    assert same_color(found[CHANGE].get_color(), job.palette["warning"])
    assert RED in found
    assert any("fails here in part: Workers save: published as less" in text for text in found)
    with open(tmp_path / "figures/fig02c.claims.csv", newline="", encoding="utf-8") as handle:
        failing, _ = csv.DictReader(handle)
    told = ("claim", "takeaway", "subject", "published", "here", "tolerance", "published_id")
    assert failing == {"sentence": ROW["claim_text"], **{name: ROW[name] for name in told}}
    caption = " ".join((tmp_path / "figures/fig02c.txt").read_text("utf-8").split())
    assert f"(T5.1.7b): AGX Xavier, LeNet-5: published {CHANGE}" in caption
    assert "Simulated, not measured." in caption
    for panel in job.saved.values():
        (legend,) = panel[0][0].get_figure(root=True).legends
        assert len(legend.get_texts()) <= MOST_ENTRIES


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "holds", "status": "holds"},
        {"status": "holds"},
        {"backend": "fake"},
        {"form": "general", "board": "own agx d1"},
        {"claim": "T5.2.1a"},
    ],
)
def test_nothing_is_red_that_holds_or_is_of_others(changes, drawn, tmp_path):
    job = drawn(row(**changes))
    found = texts(job)
    assert same_color(found[CHANGE].get_color(), job.palette["published"])
    assert RED not in found
    lines = (tmp_path / "figures/fig02c.claims.csv").read_text("utf-8").splitlines()
    assert len(lines) == 1


@pytest.mark.parametrize("more", [{}, {"comparisons": ""}])
def test_what_no_claim_judges_is_red_where_it_is_far_off(more, drawn):
    far = CHANGE.replace("-5.0", "+10.0")
    job = drawn(later_wh=2.2, **more)
    assert same_color(texts(job)[far].get_color(), job.palette["warning"])


def test_print_has_no_notes_and_says_in_its_title_that_it_is_simulated(drawn):
    found = texts(drawn(row(), notes=False))
    assert not any("fails here" in text or " runs" in text for text in found)
    assert any(text.startswith("Simulated · ") for text in found)


@pytest.mark.parametrize(
    ("parameters", "advice"),
    [
        ({"change": "f e"}, r"write change: \[f, e\]"),
        ({"printed_fronts": "lenet: three"}, "remove it"),
        ({"wrong": 1}, "unexpected keyword argument"),
    ],
)
def test_parameters_of_a_former_version_are_refused_with_what_to_write(
    parameters, advice, job_of, made_up
):
    job = job_of("fig08", made_up(), parameters={"x": "energy_paper_wh", **parameters})
    with pytest.raises(ConfigError, match=advice):
        draw_figure(job)
