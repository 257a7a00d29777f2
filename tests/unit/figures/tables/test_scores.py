"""The page of predictions, and the drawing of all methods' errors."""

import csv

import pytest

from epochwatt.figures.tables.scores import draw_scores, short, write_page

FACTORS = "board_group,setup,device,instance,storage,num_workers,batch_size"
PLACE = "0,sigmetrics2023,agx,d1,ssd,4,16"
HEAD = f"{FACTORS},target,method,learned_from,networks,modes,statistic,value"
STATISTICS = f"""\
{HEAD},n_predictions,n_subsets,published,n_published,criterion,agrees,is_paper
{PLACE},time_s,paper,paper,all,all,below 10 %,35.0,40,,31.0,40,>= 31 of 40,yes,True
{PLACE},time_s,log,paper,all,all,below 10 %,20.0,40,,,,,,False
{PLACE},time_s,paper,paper,all,all,chosen modes,dfhj,,210,efij,,= efij,no,True
{PLACE},time_s,paper,paper,all,all,tied within 1 %,,,,,,,,True
"""
PARTS = "n_subsets,n,median_pct,p90_pct,worst_pct,board_minutes_low,board_minutes_median"
RATIOS = ",".join(f"error_ratio_to_paper_{part}" for part in ("q25", "q50", "q75"))
LAST = f"board_minutes_high,{RATIOS},by_construction,left_out"
NUMBERS = "210,1260,2.6662,11.4964,48.853,8.5,90.6,9.96,0.1234,0.4567,1.2"
TWICE = "210,1260,5.3,22.9,2106.07,8.5,90.6,135.7,1.0,1.0,1.0"
LEFT_OUT = "vgg11: no valid epoch 1 or 2 in d"
SCORES = f"""\
{FACTORS},target,method,learned_from,networks,{PARTS},{LAST}
{PLACE},time_s,paper,every subset of four,lenet,{TWICE},False,
{PLACE},time_s,physical,every subset of four,lenet,{NUMBERS},False,{LEFT_OUT}
"""


def page_of(tmp_path, backend="twin", scores=SCORES, statistics=STATISTICS):
    (tmp_path / "statistics.csv").write_text(statistics, encoding="utf-8")
    (tmp_path / "scores.csv").write_text(scores, encoding="utf-8")
    write_page(str(tmp_path), backend, str(tmp_path / "scores.html"))
    return (tmp_path / "scores.html").read_text("utf-8")


def test_page_says_simulated_and_shows_the_papers_counts_and_all_scores(tmp_path):
    text = page_of(tmp_path)
    assert "simulated, not measured: agx" in text
    for words in ("35 of 40 (31 of 40)", "dfhj of 210 (efij)", f">{LEFT_OUT}</td>", ">2106</td>"):
        assert words in text
    assert all(f">{cell}</td>" in text for cell in ("2.67", "11.5", "48.9", "0.457 (0.123 to 1.2)"))
    assert "8, 91, 10</td>" in text  # board minutes
    assert 'tied within 1 %</td><td class="short">none</td>' in text
    assert "20 of 40" not in text  # another model is no count of the paper's
    assert "1 (1 to 1)" not in text  # nor is the paper's method beside itself


def test_models_side_by_side_come_first_and_each_group_says_what_its_rows_share(tmp_path):
    text = page_of(tmp_path)
    titles = ["<h2>Methods side by side", ">physical</td>", "<h2>What the paper counts"]
    assert [text.index(title) for title in titles] == sorted(text.index(t) for t in titles)
    heading = "<h3>Board group 0: agx-d1, ssd, 4 workers, batch 16, setup sigmetrics2023</h3>"
    assert text.count(heading) == 2
    assert ">sigmetrics2023</td>" not in text
    assert "<p>All rows: networks: lenet.</p>" in text
    assert "<th>method</th>" in text


def test_fits_by_construction_are_warned_of_and_without_runs_there_is_a_page(tmp_path):
    assert "no evidence" not in page_of(tmp_path)
    assert "no evidence" in page_of(tmp_path, scores=SCORES.replace("1.2,False", "1.2,True"))
    assert "measured on no run" in page_of(tmp_path, "jetson", "", "")


def test_numbers_have_three_figures():
    cells = ("2106.07", "0.36757", "dfhj", "", "13226.7", "999.7", "99.96", "-3e5")
    assert [short(cell) for cell in cells] == [
        *("2106", "0.368", "dfhj", "", "13227", "1000", "100", "-300000")
    ]


EVERY = "every subset of four"


@pytest.fixture
def drawn(tmp_path, request, monkeypatch):
    """Return a function: rows of scores.csv -> text of the drawing, rows of its table."""
    monkeypatch.chdir(request.config.rootpath)
    columns = "board_group,device,target,method,learned_from,median_pct,p90_pct,by_construction"

    def draw(*rows, by_construction=False):
        with open(tmp_path / "scores.csv", "w", newline="", encoding="utf-8") as handle:
            handle.write(f"{columns}\n")
            csv.writer(handle).writerows((*row, by_construction) for row in rows)
        draw_scores(str(tmp_path), "twin")
        with open(tmp_path / "methods.csv", newline="", encoding="utf-8") as handle:
            table = list(csv.DictReader(handle))
        return (tmp_path / "methods.svg").read_text("utf-8"), table

    return draw


def test_every_method_of_the_table_is_drawn(drawn):
    pairs = [(t, m) for t in ("time_s", "power_w") for m in ("paper", "mine")]
    rows = [(0, "agx", *p, from_, 3.0, 9.0) for p in pairs for from_ in (EVERY, "designed: a b")]
    text, table = drawn(*rows)
    for words in (">the paper's regression<", ">mine<", "simulated, not measured: Jetson AGX"):
        assert words in text
    assert "by construction" not in text
    assert [(row["target"], row["method"]) for row in table] == pairs


def test_scores_by_construction_are_marked_and_without_scores_the_drawing_is_empty(drawn):
    text, _ = drawn((0, "agx", "time_s", "mine", EVERY, 0.3, 2.0), by_construction=True)
    assert "hollow: almost right by construction" in text
    text, table = drawn()
    assert "no run" in text
    assert table == []
