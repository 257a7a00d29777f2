"""Every figure with as many runs as in the paper: all of its text is readable.

The runs are made up: they only have to fill the axes as the paper's numbers do.
"""

from collections import defaultdict

import pytest
from panels import assert_readable

from epochwatt.figures.draw_figure import draw_figure

TITLES = {
    "lenet": "LeNet-5",
    "mobilenet": "MobileNetV3-Large",
    "resnet": "ResNet-18",
    "agx": "AGX Xavier",
    "nx": "Xavier NX",
    "nano": "Nano",
    "orin": "AGX Orin",
}
PLACES = (
    ("agx", "lenet"),
    ("agx", "mobilenet"),
    ("agx", "resnet"),
    ("nx", "lenet"),
    ("nx", "mobilenet"),
    ("nano", "lenet"),
)
MODES = {"agx": "g", "nx": "15W", "nano": "MAXN", "orin": "MAXN"}
E2E_S = {"lenet": 37.0, "mobilenet": 297.0, "resnet": 349.0}
HIPCW = {
    "setup": "hipcw2021",
    "model": "mobilenet",
    "dataset": "gld23k",
    "device": "nx",
    "power_mode": "15W",
}


@pytest.fixture
def draw(job_of):
    """Return a function that draws a figure of these runs and returns its panels."""

    def call(figure, *epochs, **changes):
        settings = {"titles": TITLES, "lacking": ["a-study", "another-study"], **changes}
        job = job_of(figure, *epochs, **settings)
        draw_figure(job)
        return job.saved

    return call


@pytest.fixture
def run(made_up):
    """Return a function that writes a run whose epochs take times of its model, times `slow`."""

    def write(device="agx", model="lenet", slow=1.0, n_epochs=2, **factors):
        e2e_s = E2E_S[model] * slow
        about = {"e2e_s": e2e_s, "wait_s": 0.2 * e2e_s, "compute_s": 0.7 * e2e_s}
        about |= {"energy_paper_wh": 0.004 * e2e_s**1.1, "power_mean_w": 15.0 * slow**-0.4}
        epochs = [{**about, "e2e_s": e2e_s * (1 + 0.01 * k)} for k in range(n_epochs)]
        factors = {"device": device, "model": model, "power_mode": MODES[device], **factors}
        return made_up(*epochs, **factors)

    return write


def test_figure_2(draw, run):
    workers = (0, 1, 2, 4, 8)
    assert_readable(
        draw(
            "fig02",
            *(run(*p, 9 - w, num_workers=w, storage="hdd") for p in PLACES for w in workers),
        )
    )


@pytest.mark.parametrize("backend", ["host", "jetson"])
def test_figure_2_without_power_says_it_once(draw, made_up, backend):
    about = {"backend": backend, "device": "host", "instance": "local"}
    runs = [
        made_up(model=model, batch_size=size, num_workers=w, **about)
        for model, size in (("lenet", 16), ("lenet", 32), ("mobilenet", 8))
        for w in (0, 1, 2)
    ]
    assert_readable(draw("fig02", *runs, backend=backend))


def test_figure_3(draw, run):
    media = ("ssd", "sd", "hdd")
    where = [
        (p, m, w) for p in PLACES for m in media for w in (0, 4) if (p[0], m) != ("nano", "ssd")
    ]
    assert_readable(draw("fig03", *(run(*p, storage=m, num_workers=w) for p, m, w in where)))


def test_figure_4(draw, run, gone):
    sizes = [2**n for n in range(8)]
    runs = [run(model=m, slow=9 / s, batch_size=s) for m in E2E_S for s in sizes if s < 128]
    assert_readable(draw("fig04", *runs, missing=[gone(model=m, batch_size=128) for m in E2E_S]))


def test_figure_5(draw, run):
    types = (("agx", "resnet"), ("nx", "mobilenet"), ("nano", "lenet"))
    units = [f"d{n}" for n in range(1, 6)]
    assert_readable(
        draw(
            "fig05",
            *(run(*t, 1 + 0.02 * n, 9, instance=u) for t in types for n, u in enumerate(units)),
        )
    )


def test_figure_6(draw, run):
    assert_readable(
        draw("fig06", *(run(model=m, dvfs=dvfs) for m in E2E_S for dvfs in ("off", "on")))
    )


@pytest.mark.parametrize("scope", ["socket", "module"])
def test_figure_7(draw, tmp_path, scope):
    head = "backend,device,instance,power_mode,dvfs,state,power_scope,power_w\n"
    states = ("i", "ii", "iii", "iv") if scope == "socket" else ("i",)
    rows = [
        f"twin,{device},d1,{mode},,{state},{scope},{5.0 + n}\n"
        for device, mode in MODES.items()
        for n, state in enumerate(states)
        if (device, state) != ("orin", "iv")
    ]
    (tmp_path / "idle.csv").write_text(head + "".join(rows), encoding="utf-8")
    assert_readable(draw("fig07", idle=str(tmp_path / "idle.csv")))


@pytest.mark.parametrize("figure", ["fig08", "fig09", "fig11", "fig13"])
def test_power_modes(draw, run, figure, gone):
    slow = {mode: 1 + ((7 * n) % 13) / 9 for n, mode in enumerate("abcdefghijklm")}
    runs = [run(model=m, slow=s, power_mode=mode) for m in E2E_S for mode, s in slow.items()]
    assert_readable(
        draw(
            figure,
            *runs,
            missing=[gone(power_mode="n", model=m) for m in E2E_S],
            records=defaultdict(str),
        )
    )


@pytest.mark.parametrize("figure", ["hipcw_fig02", "hipcw_fig03"])
def test_workers_and_media(draw, run, figure):
    runs = [
        run(slow=4 / (w + 1), **HIPCW, storage=medium, num_workers=w)
        for medium in ("ssd", "sd", "hdd")
        for w in (0, 1, 2, 4)
    ]
    assert_readable(draw(figure, *runs))


@pytest.mark.parametrize("figure", ["hipcw_fig06", "hipcw_fig07", "hipcw_fig08"])
def test_size_of_the_data_set(draw, run, gone, figure):
    about = {**HIPCW, "dataset_source": "synthetic"}
    runs = [
        run(slow=4 * scale / (w + 1), **about, storage="ssd", num_workers=w, dataset_scale=scale)
        for scale in (0.25, 1.0, 4.0)
        for w in (0, 4)
    ]
    missing = [gone(**about, storage="hdd", num_workers=w, dataset_scale=4.0) for w in (0, 4)]
    assert_readable(draw(figure, *runs, missing=missing))
