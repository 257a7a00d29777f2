"""What the study of PowerTrain shows: figures, the paper's numbers beside ours, a page.

Needs: results/powertrain/ (powertrain.smk), its claims (claims.smk), config/published/powertrain/.
Gives: results/figures/{twin,public}/powertrain_*, results/powertrain/numbers.csv and index.html.
"""

from epochwatt.figures.powertrain.looks import FIGURES
from epochwatt.prediction.transfer.names import TABLES
from epochwatt.prediction.transfer.study import table_of

PAGE_TABLES = ("errors", "penalties", "numbers", "claims")
POWERTRAIN_DRAWN = [f"results/figures/{name}" for name in FIGURES]


rule draw_powertrain:
    """Draw the study: learning curves, transfer matrix, power limits, one limit as an example."""
    input:
        tables=[f"results/powertrain/{name}.csv" for name in TABLES],
        numbers="config/published/powertrain/numbers.csv",
        modes=table_of(POWERTRAIN.example.workload) if POWERTRAIN else [],
        style="config/paper.mplstyle",
    output:
        svg=[f"{stem}.svg" for stem in POWERTRAIN_DRAWN],
        png=[f"{stem}.png" for stem in POWERTRAIN_DRAWN],
        csv=[f"{stem}.csv" for stem in POWERTRAIN_DRAWN],
        spec=[f"{stem}.vl.json" for stem in POWERTRAIN_DRAWN],
        txt=[f"{stem}.txt" for stem in POWERTRAIN_DRAWN],
    log:
        "results/logs/draw_powertrain.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        folder=subpath(output[0], ancestor=2),
        code=code_of("draw_powertrain.py"),
    script:
        "../scripts/draw_powertrain.py"


rule compare_powertrain:
    """Put the paper's numbers and ours beside each other."""
    input:
        tables=expand(
            "results/powertrain/{name}.csv", name=["errors", "penalties", "example"]
        ),
        numbers="config/published/powertrain/numbers.csv",
    output:
        table="results/powertrain/numbers.csv",
    log:
        "results/logs/compare_powertrain.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("compare_powertrain.py"),
    script:
        "../scripts/compare_powertrain.py"


rule show_powertrain:
    """Show the study on one page."""
    input:
        tables=expand("results/powertrain/{name}.csv", name=PAGE_TABLES),
        drawings=rules.draw_powertrain.output.svg,
    output:
        page="results/powertrain/index.html",
    log:
        "results/logs/show_powertrain.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        tables={name: f"results/powertrain/{name}.csv" for name in PAGE_TABLES},
        code=code_of("show_powertrain.py"),
    script:
        "../scripts/show_powertrain.py"
