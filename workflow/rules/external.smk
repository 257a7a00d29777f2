"""Measurements by others against this project's parsers, laws and simulated boards.

Needs: config/sweeps/ and, for those without a licence, the user's folder of others' repositories, which
the environment variable EPOCHWATT_PUBLIC_DATA names; counts of the papers' networks; config/twin/.
Gives: results/tables/external.csv and external_curves.csv, results/external.html, a figure. `all` does not
ask for them: `snakemake external`.
"""


rule check_external:
    """Make every check whose measurements are here; the others have a row that says where to get them."""
    input:
        config=[*TWIN_CONFIG, *DEVICES],
        sweeps=sorted(map(str, Path("config/sweeps").glob("*.*"))),
        rooflines=sorted(map(str, Path("config/rooflines").glob("*.*"))),
        workloads=expand("results/twin/workloads/{model}.json", model=PUBLISHED_MODELS),
        style="config/paper.mplstyle",
    output:
        table="results/tables/external.csv",
        curves="results/tables/external_curves.csv",
        page="results/external.html",
        figure="results/figures/external/energy_curves.svg",
        png="results/figures/external/energy_curves.png",
        csv="results/figures/external/energy_curves.csv",
        caption="results/figures/external/energy_curves.txt",
    log:
        "results/logs/check_external.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        folder=os.environ.get("EPOCHWATT_PUBLIC_DATA", ""),
        code=code_of("check_external.py"),
    script:
        "../scripts/check_external.py"
