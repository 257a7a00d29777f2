"""Figures 8 and 11 to 16: the points, the fronts, what the markers tell."""

import pytest

from epochwatt.figures.draw_figure import draw_figure

COSTS = {"a": (0.1, 9.0), "b": (0.2, 9.5), "g": (0.3, 5.0), "h": (0.4, 5.0)}  # Wh, s
PAPER = {"setup": "sigmetrics2023"}


@pytest.fixture
def runs(made_up):
    """Return a function that writes a run per mode of `costs`; gives the paths."""

    def write(model="lenet", costs=COSTS, **factors):
        return [
            made_up(
                {},
                {"energy_paper_wh": wh, "e2e_s": s, "power_mean_w": wh * 3600 / s},
                **{"model": model, "power_mode": mode, **factors},
            )
            for mode, (wh, s) in costs.items()
        ]

    return write


def test_points_are_energy_and_time_and_those_on_the_front_are_told(
    runs, job_of, numbers, made_up, gone
):
    paths = [*runs(), made_up({}, {}, power_mode="c")]
    draw_figure(job_of("fig08", *paths, missing=[gone(power_mode="n")]))
    told = numbers("fig08", "power_mode", "quantity", "value", "on_front", "missing")
    assert told == [
        *(("a", "energy_paper_wh", "0.1", "True", ""), ("a", "e2e_s", "9.0", "True", "")),
        *(("b", "energy_paper_wh", "0.2", "False", ""), ("b", "e2e_s", "9.5", "False", "")),
        *(("g", "energy_paper_wh", "0.3", "True", ""), ("g", "e2e_s", "5.0", "True", "")),
        *(("h", "energy_paper_wh", "0.4", "False", ""), ("h", "e2e_s", "5.0", "False", "")),
        *(("c", "energy_paper_wh", "", "", "not measured"), ("c", "e2e_s", "4.0", "", "")),
        ("n", "energy_paper_wh", "", "", "out of memory"),
        ("n", "e2e_s", "", "", "out of memory"),
    ]
    costs = {"a": (0.001, 6.0), "g": (0.003, 3.0), "h": (0.01, 4.0)}
    draw_figure(job_of("fig11", *runs(costs=costs)))
    assert numbers("fig11", "power_mode", "quantity", "value", "on_front")[::2] == [
        ("a", "power_mean_w", str(0.001 * 3600 / 6.0), "True"),
        ("g", "power_mean_w", str(0.003 * 3600 / 3.0), "True"),
        ("h", "power_mean_w", str(0.01 * 3600 / 4.0), "False"),
    ]


def test_each_network_has_its_front_and_only_lenet_modes_k_to_n_in_it(runs, job_of, numbers):
    costs = {"g": (3.0, 349.0), "b": (2.0, 700.0), "n": (2.5, 500.0)}
    draw_figure(job_of("fig08", *runs(costs=costs, **PAPER), *runs("resnet", costs, **PAPER),
                       *runs("vgg11", {"g": (3.0, 9.0)})))  # fmt: skip
    told = numbers("fig08", "model", "power_mode", "compared", "on_front")
    assert set(told) == {  # a single mode compares nothing
        *(("lenet", mode, "True", "True") for mode in "bgn"),
        *(("resnet", mode, "True", "True") for mode in "bg"),
        ("resnet", "n", "False", ""),
    }
    printed = numbers("fig08", "model", "power_mode", "quantity", "published", "published_id")
    assert ("resnet", "g", "energy_paper_wh", "3.03", "S5.5.1-03") in printed
    assert ("resnet", "g", "e2e_s", "349.0", "S5.5.1-01") in printed
    draw_figure(job_of("fig08", *runs("resnet", costs)))  # of another set-up
    assert {row[0] for row in numbers("fig08", "compared")} == {"True"}
