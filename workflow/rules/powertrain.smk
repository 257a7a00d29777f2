"""PowerTrain beside its baselines and other methods: errors, choices under power limits, transfer.

Needs: config/powertrain.yaml, the tables of its sweeps: simulated ones are made, public ones lie in
config/sweeps/, measured ones in results/sweeps/ once `sweeps` in config.yaml names them.
Gives: results/powertrain/: a folder per job, of one workload against one reference, and the tables
of all jobs. Networks that have seen all modes of a workload lie in .cache/ and are found again.
"""

from epochwatt.prediction.transfer.config import Job
from epochwatt.prediction.transfer.names import NO_REFERENCE, OF_JOBS, TABLES
from epochwatt.prediction.transfer.study import jobs_of, networks_of, table_of

POWERTRAIN_JOB = "results/powertrain/jobs/{group}/{reference}/{workload}"
POWERTRAIN_JOBS = jobs_of(POWERTRAIN)


rule judge_transfer:
    """Judge methods on {wildcards.workload}, from {wildcards.reference}."""
    input:
        unpack(powertrain_tables),
        networks=ancient(powertrain_networks),
        methods=OWN_METHODS,
    output:
        [f"{POWERTRAIN_JOB}/{name}.csv" for name in OF_JOBS],
    log:
        "results/logs/judge_transfer/{group}/{reference}/{workload}.log",
    benchmark:
        "results/benchmarks/judge_transfer/{group}/{reference}/{workload}.tsv"
    wildcard_constraints:
        group="|".join(map(re.escape, POWERTRAIN.groups if POWERTRAIN else []))
        or "(?!)",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        group=lambda wildcards: POWERTRAIN.groups[wildcards.group].model_dump(),
        cache=".cache",
        code=code_of("judge_transfer.py", *METHOD_MODULES),
    script:
        "../scripts/judge_transfer.py"


rule collect_powertrain:
    """Join the tables of all jobs; the transfer matrix, and the paper's example of one limit."""
    input:
        [
            f"{POWERTRAIN_JOB}/{name}.csv".format(**job._asdict())
            for job in POWERTRAIN_JOBS
            for name in OF_JOBS
        ],
    output:
        [f"results/powertrain/{name}.csv" for name in TABLES],
    log:
        "results/logs/collect_powertrain.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        folders=[POWERTRAIN_JOB.format(**job._asdict()) for job in POWERTRAIN_JOBS],
        example=POWERTRAIN.example.model_dump() if POWERTRAIN else {},
        code=code_of("collect_powertrain.py"),
    script:
        "../scripts/collect_powertrain.py"
