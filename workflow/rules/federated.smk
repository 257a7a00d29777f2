"""Rounds of federated training on simulated fleets: plans beside simpler rules.

Needs: config/federated.yaml; the counts of its network (twin.smk).
Gives: results/federated/: rounds.csv, each fleet by each rule, and summary.csv; trainings.csv, several rounds in which
boards slow down and leave, and trainings_summary.csv; deadlines.csv; timeline.csv; results/figures/twin/federated_*.
"""

from epochwatt.figures.federated.names import stems as federated_stems
from epochwatt.rounds.config import load_federated

try:
    FEDERATED = load_federated()  # None: without config/federated.yaml
except EpochwattError as error:
    raise WorkflowError(str(error)) from None

FEDERATED_DRAWN = [f"results/figures/{name}" for name in federated_stems()]


rule simulate_rounds:
    """Judge rules for the modes of a round on simulated fleets: half a minute of one core."""
    input:
        study="config/federated.yaml",
        devices=DEVICES,
        workloads="config/workloads.yaml",
        config=TWIN_CONFIG,
        counts=counts_path(FEDERATED.workload) if FEDERATED else [],
    output:
        rounds="results/federated/rounds.csv",
        summary="results/federated/summary.csv",
        trainings="results/federated/trainings.csv",
        trainings_summary="results/federated/trainings_summary.csv",
        deadlines="results/federated/deadlines.csv",
        timeline="results/federated/timeline.csv",
    log:
        "results/logs/simulate_rounds.log",
    benchmark:
        "results/benchmarks/simulate_rounds.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("simulate_rounds.py", *METHOD_MODULES),
    script:
        "../scripts/simulate_rounds.py"


rule draw_rounds:
    """Draw a round before and after, energy by deadline, and savings beside waiting."""
    input:
        tables=expand(
            "results/federated/{name}.csv", name=["timeline", "deadlines", "summary"]
        ),
        style="config/paper.mplstyle",
    output:
        svg=[f"{stem}.svg" for stem in FEDERATED_DRAWN],
        png=[f"{stem}.png" for stem in FEDERATED_DRAWN],
        csv=[f"{stem}.csv" for stem in FEDERATED_DRAWN],
        spec=[f"{stem}.vl.json" for stem in FEDERATED_DRAWN],
        txt=[f"{stem}.txt" for stem in FEDERATED_DRAWN],
    log:
        "results/logs/draw_rounds.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        stems=FEDERATED_DRAWN,
        code=code_of("draw_rounds.py"),
    script:
        "../scripts/draw_rounds.py"
