"""From epochs.csv of measured runs to claims, exports, summary and figures, in one start."""

import re
from pathlib import Path

import pytest

from epochwatt.figures.common.job import Job
from epochwatt.figures.draw_figure import draw_figure
from tests.rules.tables import assert_expected, rows

RULES = "check_claims collect_study summarise advise_runs split_energy collect_idle"
RULES += " check_table_claims plot_fig02 plot_time_over_batch"
TARGETS = ("claims.csv", "summary.txt", "pagoda/claims.csv", "tables/runs.csv", "tables/idle.csv")
TARGETS += ("tables/advice.csv", "tables/energy_parts.csv", "figures/host/fig02a.svg")
TARGETS += ("figures/host/time_over_batch.svg",)
FIGURES = Path("results/figures/host")
INVALID = {"valid": False, "flags": {"fresh_weights"}, "e2e_s": 1000.0}
TABLE_CLAIMS = """\
id,section,sentence,paper_value,exactness,tables,quantities,predicate,note
C1,4,less is more,3,printed,fits,"less = cell('fits', 'flops_per_s')",less > 2,
"""
OWN_FIGURE = Path(__file__).resolve().parents[2] / "docs/how-to/add-a-figure.md"
BLOCK = r"^( *)```\w+ (file|append)=(\S+)\n(.*?)\n *```$"


def follow_the_recipe(checkout):
    """Do both steps of docs/how-to/add-a-figure.md: a function of one's own, and its entry."""
    blocks = re.findall(BLOCK, OWN_FIGURE.read_text("utf-8"), re.M | re.S)
    assert [kind for _, kind, _, _ in blocks] == ["file", "append"]
    for indent, kind, name, text in blocks:
        path = checkout.path / name
        path.parent.mkdir(exist_ok=True)
        before = path.read_text("utf-8") if kind == "append" else ""
        own = "\n".join(line.removeprefix(indent) for line in text.split("\n"))
        path.write_text(before + own.replace("host-pipeline", "small") + "\n", "utf-8")


@pytest.fixture(scope="module")
def paths(checkout, write_epochs, run_rules):
    """epochs.csv of three runs, one with an invalid epoch; a fourth cannot be had. All is made."""
    where = {"num_workers": 2, "batch_size": 32}
    checkout.write("exclusions.yaml", [{"where": where, "reason": "out of memory"}])
    checkout.write("idle_plug.csv", "device,instance,power_mode,state,power_w\nagx,d1,g,iii,9.5\n")
    checkout.write("published/pagoda/claims.csv", TABLE_CLAIMS)
    Path("results/pagoda").mkdir(parents=True)
    Path("results/pagoda/fits.csv").write_text("provenance,flops_per_s\nmeasured,3\n")
    follow_the_recipe(checkout)
    first, second, third = checkout.runs
    paths = [
        write_epochs(first.id, first.factors, {"wait_s": 3.0, "e2e_s": 6.0}, {}, INVALID),
        write_epochs(second.id, second.factors, {}, {"copy_s": 0.25}, {"compute_s": 2.0}),
        write_epochs(third.id, third.factors, {}, INVALID),
    ]
    for path in paths:
        Path(path).with_name("energy.csv").write_text("run,epoch,power_scope,energy_wh\n")
    run_rules(RULES, *(f"results/{target}" for target in TARGETS))
    return paths


def test_measured_runs_are_judged_on_the_forms_for_any_board(paths, checkout):
    claims = rows("results/claims.csv")
    papers = [row for row in claims if row["form"] == "paper"]
    assert len(papers) == 113
    assert {(row["status"], row["backend"]) for row in papers} == {("not_evaluable", "host")}
    compute = next(row for row in claims if (row["claim"], row["form"]) == ("T5.3.1a", "general"))
    assert (compute["status"], compute["board"]) == ("holds", "own host local")
    assert compute["runs"].split() == sorted(checkout.ids)[:2]
    assert (compute["status_held_out"], compute["rests_on"]) == ("", "")
    compared = rows("results/tables/comparisons.csv")
    assert {row["claim"] for row in compared if row["board"] == "own host local"} == {
        row["claim"] for row in claims if row["form"] == "general"
    }
    assert "No run of the papers" in Path("results/claims.txt").read_text("utf-8")


@pytest.mark.usefixtures("paths")
def test_claims_of_a_paper_are_judged_on_its_tables():
    (row,) = rows("results/pagoda/claims.csv")
    assert (row["status"], row["provenance"], row["our_value"]) == ("holds", "measured", "less = 3")


@pytest.mark.usefixtures("paths")
def test_exports_hold_all_epochs_and_their_statistics():
    for name in ("epochs", "runs"):
        assert_expected(f"results/tables/{name}.csv", "collect_study")


@pytest.mark.usefixtures("paths")
def test_entered_idle_powers_are_rows_of_scope_socket():
    (row,) = rows("results/tables/idle.csv")
    assert (row["device"], row["state"], row["power_scope"]) == ("agx", "iii", "socket")
    assert (float(row["power_w"]), row["power_error_pct"]) == (9.5, "")


@pytest.mark.usefixtures("paths")
def test_summary_says_where_the_time_went(checkout):
    lines = Path("results/summary.txt").read_text("utf-8").split("\n")
    assert lines[0] == "Measured on this machine: 3 runs, 8 epochs, 2026 s of training."
    (told,) = [re.split(r"  +", line) for line in lines if line.startswith("LeNet-5")]
    fastest = "0 workers, batch 16, disk"
    assert told == ["LeNet-5", "mnist digits x8", "2", fastest, "4.00", "38 %", "compute"]
    assert sum("(out of memory)" in line for line in lines) == 1
    advice = [(row["run"], row["bound_by"]) for row in rows("results/tables/advice.csv")]
    bound_by = ("compute", "compute", "")  # of the last there is no valid epoch after the first
    assert advice == list(zip(checkout.ids, bound_by, strict=True))
    assert rows("results/tables/energy_parts.csv") == []  # there is no sensor


def test_figure_has_the_golden_numbers_and_a_second_drawing_the_same_bytes(
    paths, checkout, tmp_path, pytestconfig
):
    for panel in ("fig02a", "fig02b", "fig02c"):
        assert_expected(FIGURES / f"{panel}.csv", "plot_figure")
    root = pytestconfig.rootpath
    draw_figure(
        Job(
            folder=str(tmp_path / "again"),
            style=str(root / "config/paper.mplstyle"),
            epochs=paths,
            published=str(root / "config/published"),
            twin=str(root / "config/twin"),
            **checkout.settings().drawing("fig02", "host"),
        )
    )
    by_rule = {path.name: path.read_bytes() for path in FIGURES.glob("fig02*")}
    again = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert [name for name, found in by_rule.items() if found != again[name]] == []
    assert len(by_rule) == len(again) == 18


@pytest.mark.usefixtures("paths")
def test_recipe_for_a_figure_of_ones_own_draws_the_medians_of_the_runs(checkout):
    drawn = [(r["run"], r["value"], r["n_epochs"]) for r in rows(FIGURES / "time_over_batch.csv")]
    first, second, third, gone = [run for run, _, _ in drawn]
    assert [first, second, third] == checkout.ids
    assert gone not in checkout.ids
    assert [row[1:] for row in drawn] == [("4.0", "1"), ("4.0", "2"), ("", "0"), ("", "0")]
    assert (FIGURES / "time_over_batch.png").read_bytes().startswith(b"\x89PNG")
