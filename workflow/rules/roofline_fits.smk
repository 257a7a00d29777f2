"""Rooflines: fitted, drawn with workloads below them, and the best mode of each of Pagoda's workloads.

Needs: results/roofline/ceilings.csv and points.csv where ceilings are measured (roofline.smk); the simulated
sweeps `pagoda-*`; config/rooflines/ and config/sweeps/, which others measured.
Gives: results/roofline/fits_{origin}.csv, results/figures/roofline/{time,energy}_{origin}.svg with numbers,
captions and interactive forms, for origin measured, simulated, public; results/pagoda/.
"""

PAGODA_TABLES = [f"results/sweeps/{name}.csv" for name in PAGODA_SWEEPS]
PAGODA_COUNTS = sorted({SWEEPS.named(n).run.counts for n in PAGODA_SWEEPS})
TX2_KERNELS = "config/sweeps/energy-time-fairness-tx2.csv.gz"
PUBLIC_POWERED = [
    TX2_KERNELS,
    *sorted(map(str, Path("config/sweeps").glob("translucence-*.csv.gz"))),
]
ROOFLINE_POINTS = {
    "measured": "results/roofline/points.csv",
    "simulated": "results/roofline/points_simulated.csv",
    "public": "results/roofline/points_public.csv",
}
ORIGINS = [
    *(["measured"] if CEILINGS else []),
    *(["simulated"] if PAGODA_SWEEPS else []),
    "public",
]
ROOFLINES = expand(
    "results/figures/roofline/{what}_{origin}.svg",
    what=["time", "energy"],
    origin=ORIGINS,
)
PAGODA_DRAWN = ["results/figures/roofline/tuning"] if PAGODA_SWEEPS else []


wildcard_constraints:
    origin="measured|simulated|public",


rule simulate_ceilings:
    """Simulate micro-kernels on all boards, and put the workloads of Pagoda's sweeps below them."""
    input:
        config=[*TWIN_CONFIG, *DEVICES],
        sweeps=PAGODA_TABLES,
        workloads=PAGODA_COUNTS,
    output:
        ceilings="results/roofline/ceilings_simulated.csv",
        points=ROOFLINE_POINTS["simulated"],
    log:
        "results/logs/simulate_ceilings.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("simulate_ceilings.py"),
    script:
        "../scripts/simulate_ceilings.py"


rule fit_roofline:
    """Fit ceilings and energy costs to micro-kernels, mode by mode."""
    input:
        ceilings=lambda wildcards: {
            "measured": "results/roofline/ceilings.csv",
            "simulated": "results/roofline/ceilings_simulated.csv",
        }[wildcards.origin],
    output:
        fits="results/roofline/fits_{origin}.csv",
    log:
        "results/logs/fit_roofline/{origin}.log",
    wildcard_constraints:
        origin="measured|simulated",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("fit_roofline.py"),
    script:
        "../scripts/fit_roofline.py"


rule fit_public_rooflines:
    """Fit the same to what others measured on Jetson boards."""
    input:
        ceilings="config/rooflines/orin-ceilings.csv.gz",
        points="config/rooflines/orin-points.csv.gz",
        work="config/rooflines/resnet-kernels.csv",
        kernels=TX2_KERNELS,
    output:
        fits="results/roofline/fits_public.csv",
        points=ROOFLINE_POINTS["public"],
    log:
        "results/logs/fit_public_rooflines.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("fit_public_rooflines.py"),
    script:
        "../scripts/fit_public_rooflines.py"


rule draw_rooflines:
    """Draw the rooflines of time and energy of one origin, with its workloads below them."""
    input:
        fits="results/roofline/fits_{origin}.csv",
        points=lambda wildcards: ROOFLINE_POINTS[wildcards.origin],
        peaks="config/rooflines/peaks.csv",
        style="config/paper.mplstyle",
    output:
        [
            f"results/figures/roofline/{what}_{{origin}}{end}"
            for what in ("time", "energy")
            for end in (".svg", ".png", ".csv", ".vl.json", ".txt")
        ],
    log:
        "results/logs/draw_rooflines/{origin}.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        folder=subpath(output[0], parent=True),
        titles=SETTINGS.titles,
        records=lambda wildcards: [
            run.records
            for run in POINT_RUNS
            if (wildcards.origin, run.factors["backend"]) == ("measured", "host")
        ],
        code=code_of("draw_rooflines.py"),
    script:
        "../scripts/draw_rooflines.py"


rule tune_modes:
    """Choose the best mode for latency and energy of each workload, simulated and public ones."""
    input:
        sweeps=[*PAGODA_TABLES, *PUBLIC_POWERED],
        fits=[f"results/roofline/fits_{o}.csv" for o in ORIGINS if o != "measured"],
    output:
        tuning="results/pagoda/tuning.csv",
        balances="results/pagoda/balances.csv",
    log:
        "results/logs/tune_modes.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("tune_modes.py"),
    script:
        "../scripts/tune_modes.py"


rule draw_tuning:
    """Draw what tuned modes save, and what they cost in time."""
    input:
        tuning="results/pagoda/tuning.csv",
        style="config/paper.mplstyle",
    output:
        multiext(
            "results/figures/roofline/tuning",
            ".svg",
            ".png",
            ".csv",
            ".vl.json",
            ".txt",
        ),
    log:
        "results/logs/draw_tuning.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("draw_tuning.py"),
    script:
        "../scripts/draw_tuning.py"
