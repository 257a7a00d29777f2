# Chains of jobs that do nothing, for benchmarks/fleet.py; config: chains, length, boards.
# A job leaves the time; each but the first of a chain waits for the one before, as epochs do.

BOARDS = config["boards"].split()


rule all:
    input:
        expand(
            "done/{chain}-{place}",
            chain=range(config["chains"]),
            place=range(config["length"]),
        ),
    localrule: True


rule step:
    input:
        lambda wildcards: (
            f"done/{wildcards.chain}-{int(wildcards.place) - 1}"
            if int(wildcards.place)
            else []
        ),
    output:
        "done/{chain}-{place}",
    resources:
        constraint=lambda wildcards: BOARDS[int(wildcards.chain) % len(BOARDS)],
        slurm_extra="'--exclusive'",
    shell:
        "date +%s.%N >{output}"
