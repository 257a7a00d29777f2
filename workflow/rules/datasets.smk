"""Data sets, made once into data/ (kept by clean).

Needs: nothing.  Gives: {storage root}/{dataset}-{source}-x{scale}/manifest.json.
"""

DATASETS = {run.data_folder: run.factors["recipe"] for run in RUNS if run.parts}
DATASETS |= {
    sweep.run.data_folder: sweep.run.factors["recipe"]
    for sweep in SWEEPS.sweeps.values()
    if sweep.chunks
}


rule make_dataset:
    """Make the data set that the folder's name and recipe describe."""
    output:
        manifest="{folder}/manifest.json",
    log:
        "results/logs/make_dataset/{folder}.log",
    wildcard_constraints:
        folder="|".join(map(re.escape, sorted(DATASETS))) or "none",
    priority: 4  # measuring waits for it, and all else for that
    localrule: True
    conda:
        ENVIRONMENT
    params:
        recipe=lambda wildcards: DATASETS[wildcards.folder],
    script:
        "../scripts/make_dataset.py"
