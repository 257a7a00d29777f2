"""Studies in pairs: is training in a container, or with whatever else a study compares, equivalent?

Needs: the `epochs.csv` of a study's runs; measured/{run}/, for versions of interpreter and libraries.
Gives: results/{study}/pairs.csv, verdicts.csv and index.html; results/figures/{study}/differences.svg.
"""

from epochwatt.study.runs import pairs_of

PAIRED_RUNS = {
    name: pairs_of([run for run in RUNS if not run.is_simulated], name, pairs)
    for name, pairs in SETTINGS.paired_studies.items()
}
MARGINS_PCT = {n: pairs["margin_pct"] for n, pairs in SETTINGS.paired_studies.items()}
PAIRED = [name for name, pairs in PAIRED_RUNS.items() if pairs]
PAIRED_PATTERN = "|".join(map(re.escape, PAIRED)) or "(?!)"


rule compare_pairs:
    """Compare the two sides of each pair of {wildcards.paired}, and test whether they are equivalent."""
    input:
        epochs=epochs_paired,
    output:
        pairs="results/{paired}/pairs.csv",
        verdicts="results/{paired}/verdicts.csv",
    log:
        "results/logs/compare_pairs/{paired}.log",
    wildcard_constraints:
        paired=PAIRED_PATTERN,
    localrule: True
    conda:
        ENVIRONMENT
    params:
        pairs=ids_paired,
        factor=lambda wildcards: SETTINGS.paired_studies[wildcards.paired]["factor"],
        margin_pct=lambda wildcards: MARGINS_PCT[wildcards.paired],
        measured="measured",  # not an input: what was measured is never made anew
        code=code_of("compare_pairs.py"),
    script:
        "../scripts/compare_pairs.py"


rule draw_pairs:
    """Draw the differences of pairs with interval and margin."""
    input:
        pairs="results/{paired}/pairs.csv",
        verdicts="results/{paired}/verdicts.csv",
        style="config/paper.mplstyle",
    output:
        multiext(
            "results/figures/{paired}/differences",
            ".svg",
            ".png",
            ".csv",
            ".vl.json",
            ".txt",
        ),
    log:
        "results/logs/draw_pairs/{paired}.log",
    wildcard_constraints:
        paired=PAIRED_PATTERN,
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("draw_pairs.py"),
    script:
        "../scripts/draw_pairs.py"


rule show_pairs:
    """Show what the pairs of {wildcards.paired} say: verdicts, figure, claims, pairs that do not count."""
    input:
        pairs="results/{paired}/pairs.csv",
        verdicts="results/{paired}/verdicts.csv",
        figure="results/figures/{paired}/differences.svg",
        claims=claims_paired,
    output:
        page="results/{paired}/index.html",
    log:
        "results/logs/show_pairs/{paired}.log",
    wildcard_constraints:
        paired=PAIRED_PATTERN,
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("show_pairs.py"),
    script:
        "../scripts/show_pairs.py"
