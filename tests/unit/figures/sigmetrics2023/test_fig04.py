"""Figure 4: the numbers plotted."""

from epochwatt.figures.sigmetrics2023.fig04 import draw


def test_time_of_a_minibatch_is_the_epochs_divided_by_their_number(job_of, made_up, gone, numbers):
    sizes = (("mobilenet", 16, 4), ("mobilenet", 32, 2), ("resnet", 16, 8))
    runs = [made_up({}, {"n_minibatches": n}, model=m, batch_size=size) for m, size, n in sizes]
    draw(job_of("fig04", *runs, missing=[gone(model="resnet", batch_size=32)]))
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
    told = numbers("fig04b", "quantity", "batch_size", "published", "published_id")
    assert ("compute_ms_per_minibatch", "16", "195.0", "S5.3.1-01") in told
    assert ("compute_ms_per_minibatch", "32", "361.0", "S5.3.1-02") in told
    told = numbers("fig04b", "published_id", "published", "value", "is_relation")
    assert [row[:3] for row in told if row[3]] == [("RS5.3.1-03", "2.0", "2.0")]  # it doubles
    for panel, part in (("fig04a", "stall"), ("fig04c", "e2e")):
        assert {row[1] for row in numbers(panel, "model", "quantity") if row[0]} == {
            *(f"{part}_s", f"{part}_ms_per_minibatch")
        }
