"""Simulated boards: what each network asks of a GPU, counted once, then runs and idle powers.

Needs: a network; config/twin/.  Gives: results/twin/workloads/{model}.json, results/simulated/ in the
form of measured/, and the tables of each simulated run, which no other job has to collect.
"""

from epochwatt.study.expand import OWN_KEYS
from epochwatt.twin.inputs.digest import digests

TWIN_CONFIG = sorted(str(path) for path in Path("config/twin").glob("*.yaml"))
PUBLISHED_MODELS = ("lenet", "mobilenet", "resnet")  # that the papers print numbers of
SIMULATED_MODELS = {run.factors["model"] for run in TABLE.of_backend(TWIN)}
VALIDATED = sorted(
    str(path)
    for files in ("twin/*.*", "published/*.csv", "devices/*.yaml")
    for path in Path("config").glob(files)
)

try:  # a comment or a new date in a file simulates nothing: what it says to a board counts
    TWIN_DIGESTS = (
        digests(Path("config/twin")) if SIMULATED_MODELS or SIMULATED_IDLES else {}
    )
except EpochwattError as error:
    raise WorkflowError(str(error)) from None


rule count_workload:
    """Count the kernels of one training mini-batch; the one rule of the twin that needs torch."""
    output:
        workload="results/twin/workloads/{model}.json",
    log:
        "results/logs/count_workload/{model}.log",
    wildcard_constraints:
        model="|".join(map(re.escape, sorted(SETTINGS.workloads))),
    conda:
        ENVIRONMENT
    resources:
        python=sys.executable,
        tmpdir=tempfile.gettempdir(),
    params:
        network=lambda wildcards: SETTINGS.workloads[wildcards.model].model_dump_json(
            include=OWN_KEYS
        ),
        code=fingerprint("epochwatt.twin.counting.count_workload"),
    shell:
        "{resources.python:q} -m epochwatt.twin count-workload {wildcards.model}"
        " --output {output.workload:q} >{log:q} 2>&1"


rule count_workloads:
    """The networks that the papers print numbers of, counted: what `make validate` starts from."""
    input:
        expand("results/twin/workloads/{model}.json", model=PUBLISHED_MODELS),


rule simulate_run:
    """Simulate all epochs of one run: records as a board leaves them, and its tables."""
    input:
        config=ancient(TWIN_CONFIG),
        workload=workload,
    output:
        records=directory("results/simulated/{run}"),
        epochs="results/runs/{run}/epochs.csv",
        energy="results/runs/{run}/energy.csv",
    log:
        "results/logs/simulate_run/{run}.log",
    wildcard_constraints:
        run=f"{TWIN}-.+",
    conda:
        ENVIRONMENT
    resources:
        python=sys.executable,
        tmpdir=tempfile.gettempdir(),
    params:
        simulation=simulation,
        board=lambda wildcards: TWIN_DIGESTS.get(TABLE[wildcards.run].factors["device"]),
        code=fingerprint("epochwatt.twin.simulation.simulate_run"),
    shell:  # numpy's threads take 0.05 s to start, and a job has one core
        "OPENBLAS_NUM_THREADS=1 {resources.python:q} -m epochwatt.twin simulate-run {wildcards.run}"
        " {params.simulation} --workload {input.workload:q} --output {output.records:q}"
        " --tables results/runs/{wildcards.run} >{log:q} 2>&1"


rule simulate_idle:
    """Simulate all idle powers, in one job: each is one number."""
    input:
        config=ancient(TWIN_CONFIG),
    output:
        records=directory("results/simulated/idle"),
    log:
        "results/logs/simulate_idle.log",
    conda:
        ENVIRONMENT
    resources:
        python=sys.executable,
        tmpdir=tempfile.gettempdir(),
    params:
        idles=json.dumps(SIMULATED_IDLES),
        boards=TWIN_DIGESTS,
        code=fingerprint("epochwatt.twin.simulation.simulate_run"),
    shell:
        "OPENBLAS_NUM_THREADS=1 {resources.python:q} -m epochwatt.twin simulate-idle --idles {params.idles:q}"
        " --output {output.records:q} >{log:q} 2>&1"


rule validate_twin:
    """Hold the simulation, fitted without each take-away in turn, against the published numbers.

    `make validate` refits; this evaluates the refits of config/twin/refits.csv.
    """
    input:
        config=VALIDATED,
        workloads=rules.count_workloads.input,
        style=lambda wildcards: STYLE,
    output:
        table="results/twin/validation.csv",
        groupings="results/twin/groupings.csv",
        text="results/twin/validation.txt",
        png="results/figures/twin/validation.png",
        csv="results/figures/twin/validation.csv",
        figure=report(
            "results/figures/twin/validation.svg",
            caption="../report/validation.rst",
            category="Simulated boards",
            labels={"shows": "held-out predictions"},
        ),
    log:
        "results/logs/validate_twin.log",
    conda:
        ENVIRONMENT
    params:
        palette=SETTINGS.plotting.palette,
        code=fingerprint(
            "epochwatt.twin.validation.validate_twin", "epochwatt.figures.validation"
        ),
    script:
        "../scripts/validate_twin.py"


rule validation:
    """What the simulation is worth, where all networks are simulated that numbers are printed of."""
    input:
        (
            rules.validate_twin.output
            if SIMULATED_MODELS.issuperset(PUBLISHED_MODELS)
            else []
        ),
