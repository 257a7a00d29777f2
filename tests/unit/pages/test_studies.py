"""Studies on the landing page and on pages of their own: PowerTrain, Fulcrum, pairs."""

import json
from pathlib import Path

import pandas as pd
import pytest

from epochwatt.analysis.pairs import pair_rows, verdict_rows
from epochwatt.figures.pairs import draw_pairs
from epochwatt.pages.site import write_pairs

STYLE = str(Path(__file__).resolve().parents[3] / "config/paper.mplstyle")


OTHERS = ("cpu_util_pct", "gpu_util_pct", "ram_used_mib", "energy_wh")  # not measured


@pytest.fixture
def pairs_page(tmp_path):
    """Return a function that makes page and figure of pairs whose B is slower by some %."""

    def make(slower_pct, n=6, flags="", differs=""):
        means = {}
        for seed in range(n):
            for side, factor in (("none", 1.0), ("podman", 1 + slower_pct / 100)):
                time_s = factor * (10 + (0.01 * seed if side == "podman" else 0.0))
                means[f"{side}-{seed}"] = {
                    **{"backend": "host", "device": "host", "model": "lenet", "storage": "disk"},
                    **{"num_workers": 1, "batch_size": 16, "power_mode": "asis", "dvfs": "on"},
                    **{"seed": seed, "container": side, "all_flags": flags, "started_unix_s": 1.0},
                    **{"minibatch_s": time_s, "undisturbed_s": time_s, "e2e_s": time_s},
                    **{"wait_s": 0.1},
                }
        frame = pd.DataFrame.from_dict(means, orient="index").reindex(
            columns=[*next(iter(means.values())), *OTHERS]
        )
        pairs = {(f"none-{seed}", f"podman-{seed}"): differs for seed in range(n)}
        rows = pair_rows(frame, pairs, "container")
        verdicts = verdict_rows(rows, frame, "container", 3.0)
        paths = []
        for name, content in (("pairs", rows), ("verdicts", verdicts)):
            paths.append(str(tmp_path / f"{name}.csv"))
            content.to_csv(paths[-1], index=False)
        stem = str(tmp_path / "differences")
        draw_pairs(*paths, STYLE, stem)
        write_pairs(*paths, f"{stem}.svg", [], str(tmp_path / "index.html"))
        spec = json.loads(Path(f"{stem}.vl.json").read_text("utf-8"))
        return (tmp_path / "index.html").read_text("utf-8"), spec

    return make


def test_the_page_of_pairs_says_what_is_different_and_what_disturbed_it(pairs_page, tmp_path):
    page, spec = pairs_page(slower_pct=5.0)
    assert "different: mini-batch time (copy, compute), mini-batch time, 10th percentile, " in page
    assert "equivalent: wait" in page
    assert "other programs" not in page
    assert spec["layer"][0]["data"]["values"] == [{"from": -3.0, "to": 3.0}]  # the margin
    assert "podman against none" in (tmp_path / "differences.svg").read_text("utf-8")
    page, _ = pairs_page(slower_pct=0.0, flags="cold_process machine_shared")
    assert "other programs took CPUs during 6 of 6 pairs" in page
    page, spec = pairs_page(slower_pct=5.0, differs="torch 1.8 / 2.1")
    assert "Pairs that do not count" in page
    assert "torch 1.8 / 2.1" in page
    assert spec["data"]["values"] == [{"text": "no numbers"}]
