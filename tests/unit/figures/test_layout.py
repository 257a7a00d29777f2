"""Every figure with as many runs as in the paper: all of its text is readable."""

from collections import defaultdict
from itertools import product

import pytest
from panels import assert_readable

from epochwatt.figures.draw_figure import draw_figure

TITLES = {
    **{"lenet": "LeNet-5", "mobilenet": "MobileNetV3-Large", "resnet": "ResNet-18"},
    **{"agx": "AGX Xavier", "nx": "Xavier NX", "nano": "Nano", "orin": "AGX Orin"},
}
PLACES = (
    *(("agx", "lenet"), ("agx", "mobilenet"), ("agx", "resnet")),
    *(("nx", "lenet"), ("nx", "mobilenet"), ("nano", "lenet")),
)
MODES = {"agx": "g", "nx": "15W", "nano": "MAXN", "orin": "MAXN"}
E2E_S = {"lenet": 37.0, "mobilenet": 297.0, "resnet": 349.0}
NX = {"setup": "hipcw2021", "model": "mobilenet", "dataset": "gld23k", "device": "nx"}
SYNTHETIC = {**NX, "dataset_source": "synthetic"}
LETTERS = {mode: 1 + ((7 * n) % 13) / 9 for n, mode in enumerate("abcdefghijklm")}
SLOWER_UNITS = {f"d{n}": 1 + 0.02 * n for n in range(5)}
MEDIA, SCALES = ("ssd", "sd", "hdd"), (0.25, 1.0, 4.0)
RUNS = {  # what is drawn -> factors of runs, how slow they are, how many epochs they have
    "workers": [
        {"device": d, "model": m, "slow": 9 - w, "num_workers": w, "storage": "hdd"}
        for (d, m), w in product(PLACES, (0, 1, 2, 4, 8))
    ],
    "media": [
        {"device": d, "model": m, "storage": s, "num_workers": w}
        for (d, m), s, w in product(PLACES, MEDIA, (0, 4))
        if (d, s) != ("nano", "ssd")
    ],
    "sizes": [
        {"model": m, "slow": 9 / size, "batch_size": size}
        for m, size in product(E2E_S, [2**n for n in range(7)])
    ],
    "boards": [
        {"device": d, "model": m, "slow": slow, "n_epochs": 9, "instance": unit}
        for (d, m), (unit, slow) in product((PLACES[2], PLACES[4], PLACES[5]), SLOWER_UNITS.items())
    ],
    "dvfs": [{"model": m, "dvfs": dvfs} for m, dvfs in product(E2E_S, ("off", "on"))],
    "modes": [
        {"model": m, "slow": slow, "power_mode": mode}
        for m, (mode, slow) in product(E2E_S, LETTERS.items())
    ],
    "medians": [
        {**NX, "slow": 4 / (w + 1), "storage": s, "num_workers": w}
        for s, w in product(MEDIA, (0, 1, 2, 4))
    ],
    "scales": [
        {**SYNTHETIC, "slow": 4 * of / (w + 1), "storage": "ssd", "num_workers": w,
         "dataset_scale": of}
        for of, w in product(SCALES, (0, 4))
    ],
}  # fmt: skip
GONE = {
    "sizes": [{"model": m, "batch_size": 128} for m in E2E_S],
    "modes": [{"model": m, "power_mode": "n"} for m in E2E_S],
    "scales": [{**SYNTHETIC, "storage": "hdd", "num_workers": w, "dataset_scale": 4.0}
               for w in (0, 4)],
}  # fmt: skip


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


FIGURES = (
    ("fig02", "workers"),
    ("fig05", "boards"),
    ("fig08", "modes"),
    ("hipcw_fig02", "medians"),
)
ALIKE = (
    *(("fig03", "media"), ("fig04", "sizes"), ("fig06", "dvfs"), ("fig09", "modes")),
    *(("fig11", "modes"), ("fig13", "modes"), ("hipcw_fig03", "medians")),
    *(("hipcw_fig06", "scales"), ("hipcw_fig07", "scales"), ("hipcw_fig08", "scales")),
)


@pytest.mark.parametrize(
    ("figure", "what"),
    [*FIGURES, *(pytest.param(*each, marks=pytest.mark.thorough) for each in ALIKE)],
)
def test_all_text_is_readable(figure, what, draw, run, gone):
    missing = [gone(**factors) for factors in GONE.get(what, ())]
    runs = [run(**factors) for factors in RUNS[what]]
    assert_readable(draw(figure, *runs, missing=missing, records=defaultdict(str)))
