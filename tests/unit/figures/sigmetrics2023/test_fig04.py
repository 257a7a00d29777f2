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


@pytest.mark.parametrize(
    ("stalls", "words"),
    [
        ({1: 1.0, 16: 2.0, 128: 3.0}, "here at 128 only"),
        ({1: 3.0, 128: 3.0, 16: 1.0}, "here at 1 and 128 only"),
        ({1: 1.0, 16: 1.0}, "here at no size"),
        ({1: 3.0, 16: 3.0}, None),
    ],
)
def test_a_field_says_where_stall_is_longer_than_compute(job_of, made_up, stalls, words):
    job = job_of(
        "fig04",
        *(made_up({}, {"wait_s": s, "copy_s": 0.0}, batch_size=n) for n, s in stalls.items()),
        made_up({}, {"wait_s": 0.0}, batch_size=16, model="resnet"),
    )
    draw(job)
    texts = [" ".join(text.get_text().split()) for text, _, _ in job.saved["fig04c"]]
    said = [text for text in texts if text.startswith("paper: stall > compute")]
    assert said == ([] if words is None else [f"paper: stall > compute, size not stated; {words}"])
    assert not [t for t, _, _ in job.saved["fig04a"] if "stall > compute" in t.get_text()]


def test_times_are_of_the_papers_epochs_after_the_first_and_said_to_be(job_of, made_up):
    job = job_of("fig04", made_up(*[{}] * 9, batch_size=16, setup="sigmetrics2023"))
    draw(job)
    for panel, texts in job.saved.items():
        words = " ".join(text.get_text() for text, _, _ in texts)
        assert ", epochs 1+" in words, panel
        assert "1 run, 5 epochs" in words, panel


def test_published_times_of_minibatches_are_said_to_be_the_papers(job_of, made_up):
    job = job_of("fig04", made_up(model="mobilenet", batch_size=16))
    draw(job)
    words = [" ".join(text.get_text().split()) for text, _, _ in job.saved["fig04b"]]
    assert "195" in words
    assert any("; 195: published times of a mini-batch, in ms" in text for text in words)
