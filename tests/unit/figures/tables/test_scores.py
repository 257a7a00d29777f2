"""The page of predictions."""

from epochwatt.figures.tables.scores import counted_row, score_row, short, write_page

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
NUMBERS = "210,1260,2.6662,11.4964,48.853,8.5,90.6,135.7,0.1234,0.4567,1.2"
TWICE = "210,1260,5.3,22.9,2106.07,8.5,90.6,135.7,1.0,1.0,1.0"
LEFT_OUT = "vgg11: no valid epoch 1 or 2 in d"
SCORES = f"""\
{FACTORS},target,method,learned_from,networks,{PARTS},{LAST}
{PLACE},time_s,paper,every subset of four,lenet,{TWICE},False,
{PLACE},time_s,physical,every subset of four,lenet,{NUMBERS},False,{LEFT_OUT}
"""


def page_of(tmp_path, backend, scores=SCORES):
    (tmp_path / "statistics.csv").write_text(STATISTICS, encoding="utf-8")
    (tmp_path / "scores.csv").write_text(scores, encoding="utf-8")
    write_page(str(tmp_path), backend, str(tmp_path / "scores.html"))
    return (tmp_path / "scores.html").read_text("utf-8")


def test_page_says_simulated_and_shows_the_papers_models_and_all_scores(tmp_path):
    text = page_of(tmp_path, "twin")
    assert "simulated, not measured: agx" in text
    assert "35 of 40 (31 of 40)" in text
    assert "20 of 40" not in text  # another model is no count of the paper's
    assert "dfhj of 210 (efij)" in text
    assert all(f">{cell}</td>" in text for cell in ("2.67", "11.5", "48.9", "0.457 (0.123 to 1.2)"))
    assert f">{LEFT_OUT}</td>" in text


def test_models_side_by_side_come_first_and_each_bench_says_what_its_rows_share(tmp_path):
    text = page_of(tmp_path, "twin")
    titles = ["<h2>Methods side by side", ">physical</td>", "<h2>What the paper counts"]
    assert [text.index(title) for title in titles] == sorted(text.index(t) for t in titles)
    heading = "<h3>Board group 0: agx-d1, ssd, 4 workers, batch 16, setup sigmetrics2023</h3>"
    assert text.count(heading) == 2
    assert ">sigmetrics2023</td>" not in text
    assert "<p>All rows: networks: lenet.</p>" in text
    assert "<th>method</th>" in text


def test_what_says_nothing_is_said_so_or_left_out(tmp_path):
    text = page_of(tmp_path, "twin")
    assert 'tied within 1 %</td><td class="short">none</td>' in text
    assert "1 (1 to 1)" not in text
    assert ">2106</td>" in text


def test_fits_by_construction_are_warned_of_where_there_are_any(tmp_path):
    assert "no evidence" not in page_of(tmp_path, "twin")
    on_prior = SCORES.replace(f"{NUMBERS},False", f"{NUMBERS},True")
    assert "no evidence" in page_of(tmp_path, "twin", on_prior)


def test_without_runs_the_page_is_there(tmp_path):
    for name in ("statistics.csv", "scores.csv"):
        (tmp_path / name).write_text("", encoding="utf-8")
    write_page(str(tmp_path), "jetson", str(tmp_path / "scores.html"))
    assert "measured on no run" in (tmp_path / "scores.html").read_text("utf-8")


def test_numbers_have_three_figures():
    assert (short("2106.07"), short("0.36757"), short("dfhj"), short("")) == (
        *("2106", "0.368", "dfhj"),
        "",
    )
    assert (short("13226.7"), short("999.7"), short("99.96"), short("-3e5")) == (
        *("13227", "1000", "100", "-300000"),
    )
    place = {
        "board_group": "0",
        "setup": "own",
        "device": "agx",
        "instance": "d1",
        "num_workers": "4",
    }
    row = {
        **place,
        "target": "time_s",
        "method": "paper",
        "learned_from": "paper",
        "networks": "all",
        "modes": "all",
    }
    row |= {"statistic": "mean MAPE, %", "value": "4.95", "n_predictions": "", "published": "12.0"}
    assert counted_row(row)["ours (published)"] == "4.95 (12)"
    minutes = {f"board_minutes_{part}": "9.96" for part in ("low", "median", "high")}
    errors = {f"{part}_pct": "1" for part in ("median", "p90", "worst")}
    beside = {f"error_ratio_to_paper_{part}": "" for part in ("q25", "q50", "q75")}
    one = {
        **row,
        **minutes,
        **errors,
        **beside,
        "learned_from": "x",
        "n": "6",
        "left_out": "",
        "by_construction": "False",
    }
    assert score_row(one)["board minutes (low, median, high)"] == "10, 10, 10"
    assert score_row(one)["median over the paper's"] == ""  # of power it has no model
