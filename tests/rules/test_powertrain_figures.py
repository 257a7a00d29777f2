"""Rules from the study's tables to its page; here the tables have no row, which is said."""

import csv
import shutil
from pathlib import Path

from epochwatt.figures.powertrain.looks import FIGURES
from epochwatt.prediction.transfer.names import TABLES

REPOSITORY = Path(__file__).resolve().parents[2]
RULES = "draw_powertrain compare_powertrain check_table_claims show_powertrain"


def test_tables_become_figures_claims_and_a_page(checkout, run_rule):
    published = "config/published/powertrain"
    shutil.copytree(REPOSITORY / published, published)
    shutil.copy(REPOSITORY / "config/paper.mplstyle", "config")
    Path("results/powertrain").mkdir(parents=True)
    for name, columns in TABLES.items():
        Path(f"results/powertrain/{name}.csv").write_text(",".join(columns) + "\n")
    run_rule(RULES, "results/powertrain/index.html")
    page = Path("results/powertrain/index.html").read_text("utf-8")
    assert "No table: of 18 claims 0 hold, 0 do not, 18 cannot be evaluated." in page
    for name in FIGURES:
        assert f'src="../figures/{name}.svg"' in page
        assert Path(f"results/figures/{name}.png").is_file()
    with open("results/powertrain/numbers.csv", newline="", encoding="utf-8") as handle:
        assert {row["ours"] for row in csv.DictReader(handle)} == {""}
