"""The landing page is made whatever failed, names it, and the next start tries just that again."""

import pytest
from full_checkout import PAGES, TABLES, configure_two_studies

from epochwatt import columns
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.roofline.wanted import wanted_ceilings
from epochwatt.study.settings import load_settings
from epochwatt.sweeps.table import SweepTable

pytestmark = pytest.mark.workflow

PLANTED = "a planted failure"
FIGURE = ("figures/sigmetrics2023/fig02", "draw")
CLAIMS = ("claims/check_claims", "check_claims")
GATHERING = ("analysis/collect_study", "export_tables")
CODE = """

_real = {function}


def {function}(*a, **k):
    if {condition}:
        raise ValueError({planted!r})
    return _real(*a, **k)
"""


def plant(checkout, module, function, run=None):
    """Let a function of the package fail (for a run); return what mends it."""
    path = checkout.root / f"src/epochwatt/{module}.py"
    before = path.read_text()
    condition = "True" if run is None else f"a[0].run == {run!r}"
    path.write_text(before + CODE.format(function=function, condition=condition, planted=PLANTED))
    return lambda: path.write_text(before)


def not_made(checkout):
    """Return the part of the page that says what was not made; empty: there is none."""
    page = checkout.read("results/index.html")
    return page.partition('<section id="not-made"')[2].partition("</section>")[0]


def runs_in_tables(checkout):
    return {row["run"] for row in checkout.table("results/tables/epochs.csv")}


def test_a_figure_and_a_run_that_fail_are_named_and_alone_tried_again(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    configure_two_studies(checkout, beside_batch=32)
    failing = checkout.run_of("beside").id
    mend = [plant(checkout, *FIGURE), plant(checkout, "board/training/job", "run_part", failing)]
    jobs = ["plot_fig02 host", f"train_epoch {failing} 0 0"]
    others = (f"measured/{finished.drawn}", f"results/runs/{finished.drawn}")
    before = checkout.state(*others)
    first = checkout.snakemake()
    assert (first.status, first.jobs) == (1, jobs)
    assert not_made(checkout).count(PLANTED) == 2
    assert 'href="logs/plot_fig02/host.log"' in not_made(checkout)
    assert f"logs/train_epoch/{failing}" in not_made(checkout)
    page = checkout.read("results/index.html")
    assert "host-fig02a" not in page  # the picture of the start before is out of date
    assert not (checkout.root / "results/figures/host/fig02a.svg").exists()
    for table in ("runs", "advice"):
        assert f'href="tables/{table}.csv"' in page
    assert "LeNet-5" in page
    assert runs_in_tables(checkout) == {finished.drawn}
    assert failing in checkout.read("results/summary.txt")
    assert "NOT MADE: plot_fig02" in checkout.epochwatt("summary").text

    for put_back in mend:
        put_back()
    made = [*TABLES, *PAGES, f"collect_run {failing}"]
    assert checkout.make().jobs == sorted([*jobs, *made])
    assert checkout.state(*others) == before
    assert not_made(checkout) == ""
    assert "host-fig02a" in checkout.read("results/index.html")
    assert not (checkout.root / "results/not_made.json").exists()
    assert runs_in_tables(checkout) == {finished.drawn, failing}


@pytest.mark.thorough
def test_without_the_tables_of_runs_there_is_still_a_page_and_a_report(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    plant(checkout, *GATHERING)
    plant(checkout, *CLAIMS)
    assert checkout.snakemake().status == 1
    assert not_made(checkout).count(PLANTED) == 2
    assert "results/summary.txt" in not_made(checkout)  # it waits for the claims
    assert "host-fig02a" in checkout.read("results/index.html")
    report = checkout.epochwatt("report")
    assert report.status == 0, report.text


@pytest.mark.thorough
def test_where_the_page_itself_fails_a_bare_one_says_so(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    plant(checkout, "pages/site", "write_index")
    plant(checkout, *FIGURE)
    assert checkout.snakemake().status == 1
    assert not_made(checkout).count(PLANTED) == 2
    assert 'href="claims.csv"' in checkout.read("results/index.html")


@pytest.mark.thorough
def test_on_a_machine_with_a_fast_gpu_there_is_a_page(shop, finished):
    """Ceilings of an H100, and LeNet with a CPU far below them."""
    checkout = shop.copy_of(finished.checkout)
    studies = checkout.read_yaml("config/studies.yaml")
    studies["host-pipeline"]["ceilings"] = True
    checkout.write_yaml("config/studies.yaml", studies)
    (job,) = wanted_ceilings(load_settings(root=checkout.root), SweepTable()).values()
    folder = CeilingFolder(str(checkout.root / "measured"), job.id)
    for mode in job.settings:
        folder.open_attempt(mode)
        folder.finish(mode, h100(job.id, mode))
    checkout.make()
    (fit,) = checkout.table("results/roofline/fits_measured.csv")
    assert fit["processor"] == "gpu"
    assert float(fit["flops_per_s"]) == pytest.approx(6e13, rel=0.01)
    assert "60 TFLOP/s" in checkout.read("results/figures/roofline/time_measured.svg")
    assert "roofline/time_measured" in checkout.read("results/index.html")
    assert not_made(checkout) == ""


def h100(ceilings, mode):
    """Return the record of ceilings of a mode: 60 TFLOP/s in fp32 and 3 TB/s."""
    work = [("launch", 1, 0.0, 0.0)]
    work += [("copy", 2**power, 0.0, 8.0 * 2**power) for power in range(20, 27, 2)]
    work += [("matmul", n, 2.0 * n**3, 12.0 * n**2) for n in (1024, 2048, 4096)]
    kernels = [
        {
            **{"kernel": kernel, "precision": "fp32", "size": size, "flops": flops},
            **{"bytes": moved, "way": "", "n_calls": 1, "start_s": 1.0, "end_s": 2.0, "n_power": 0},
            "blocks_s": [2e-6 + max(flops / 6e13, moved / 3e12)] * 3,
        }
        for kernel, size, flops, moved in work
    ]
    return {
        **{"schema_version": columns.SCHEMA_VERSION, "ceilings": ceilings, "mode": mode},
        **{"backend": "host", "processor": "gpu", "t_start_unix_s": 1.75e9, "flags": []},
        **{"t_start_mono_s": 1.0, "t_end_mono_s": 2.0, "events": {"before": {}, "after": {}}},
        **{"telemetry_lost": False, "kernels": kernels},
    }
