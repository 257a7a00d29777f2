"""Figure 4: the numbers plotted."""

import pytest

from epochwatt.figures.sigmetrics2023.fig04 import draw


@pytest.fixture
def drawn(job_of, made_up, gone):
    """Two sizes of two models, one of them missing."""
    draw(
        job_of(
            "fig04",
            made_up({}, {"n_minibatches": 4}, model="mobilenet", batch_size=16),
            made_up({}, {"n_minibatches": 2}, model="mobilenet", batch_size=32),
            made_up({}, {"n_minibatches": 8}, model="resnet", batch_size=16),
            missing=[gone(model="resnet", batch_size=32)],
        )
    )


def test_time_of_a_minibatch_is_the_epochs_divided_by_their_number(drawn, numbers):
    told = numbers("fig04b", "model", "batch_size", "quantity", "value", "missing")
    assert [row for row in told if row[0]] == [
        ("mobilenet", "16", "compute_s", "2.25", ""),
        ("mobilenet", "32", "compute_s", "2.25", ""),
        ("mobilenet", "16", "compute_ms_per_minibatch", "562.5", ""),
        ("mobilenet", "32", "compute_ms_per_minibatch", "1125.0", ""),
        ("resnet", "16", "compute_s", "2.25", ""),
        ("resnet", "32", "compute_s", "", "out of memory"),
        ("resnet", "16", "compute_ms_per_minibatch", "281.25", ""),
        ("resnet", "32", "compute_ms_per_minibatch", "", "out of memory"),
    ]


def test_published_times_of_minibatches_are_there(drawn, numbers):
    told = numbers("fig04b", "quantity", "batch_size", "published", "published_id")
    assert ("compute_ms_per_minibatch", "16", "195.0", "S5.3.1-01") in told
    assert ("compute_ms_per_minibatch", "32", "361.0", "S5.3.1-02") in told


@pytest.mark.parametrize(("panel", "part"), [("fig04a", "stall"), ("fig04c", "e2e")])
def test_each_panel_has_its_part(drawn, numbers, panel, part):
    assert {row[1] for row in numbers(panel, "model", "quantity") if row[0]} == {
        *(f"{part}_s", f"{part}_ms_per_minibatch")
    }


def test_doubling_of_a_minibatch_is_beside_the_published_one(drawn, numbers):
    told = numbers("fig04b", "published_id", "published", "value", "is_relation")
    assert [row[:3] for row in told if row[3]] == [("RS5.3.1-03", "2.0", "2.0")]


def test_times_are_of_the_papers_epochs_after_the_first_and_said_to_be(job_of, made_up):
    job = job_of("fig04", made_up(*[{}] * 9, batch_size=16, setup="sigmetrics2023"))
    draw(job)
    for panel, texts in job.saved.items():
        words = " ".join(text.get_text() for text, _, _ in texts)
        assert ", epochs 1+" in words, panel
        assert "1 run, 5 epochs" in words, panel
