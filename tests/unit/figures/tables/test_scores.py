"""The page of predictions, and the drawing of all methods' errors."""

from epochwatt.figures.tables.scores import write_page

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
