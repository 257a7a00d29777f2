"""The papers' take-aways as claims, judged on the runs of each backend; two backends never meet.

Needs: the `epochs.csv` of the runs that a claim asks for, the records of those whose clocks are asked
for, predictions, idle powers; for simulated runs the twin, on which claims are judged again with other
parameters.
Gives: results/claims.csv and its summary, results/claims.txt.
"""

from epochwatt.claims.required_runs import needed

try:
    CLAIMS = needed(TABLE)
except EpochwattError as error:
    raise WorkflowError(str(error)) from None

CLAIM_CONFIG = ["config/claims.yaml", "config/published/takeaways.csv"]
if TWIN in CLAIMS.backends:
    CLAIM_CONFIG += [
        *TWIN_CONFIG,
        "config/twin/refits.csv",
        "config/twin/setups.csv",
        "config/twin/mechanisms.csv",
    ]
    CLAIM_CONFIG += sorted(str(path) for path in Path("config/devices").glob("*.yaml"))


rule check_claims:
    """Judge every claim of both papers, simulated ones also without their take-away."""
    input:
        epochs=epochs_of(CLAIMS.runs),
        records=[f for r, f in CLAIMS.records.items() if TABLE[r].is_simulated],
        idle=rules.collect_idle.output if IDLES or SIMULATED_IDLES else [],
        workloads=expand("results/twin/workloads/{model}.json", model=CLAIMS.models),
        predictions=expand(f"{MODELS}/predictions.csv", backend=MODEL_BACKENDS),
        choices=expand(f"{MODELS}/power_modes.json", backend=MODEL_BACKENDS),
        config=CLAIM_CONFIG,
    output:
        table=shown("results/claims.csv", "claims", "Claims", "the table behind it"),
        text="results/claims.txt",
    log:
        "results/logs/check_claims.log",
    conda:
        ENVIRONMENT
    params:
        backends=CLAIMS.backends,
        records=CLAIMS.records,
        power_modes=CLAIMS.power_modes,
        models=expand(MODELS, backend=MODEL_BACKENDS),
        code=fingerprint("epochwatt.claims.check_claims"),
    script:
        "../scripts/check_claims.py"
