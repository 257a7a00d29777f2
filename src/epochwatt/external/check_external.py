"""All checks against measurements by others, as one table: rule check_external."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from epochwatt.external import clock_laws, energy_curves, rooflines, scaling, training_logs
from epochwatt.external.check import NOT_AVAILABLE, Check, Finding, write_checks
from epochwatt.external.inputs import Inputs, NotHereError
from epochwatt.sweeps.public.registry import public_folder
from epochwatt.twin.inputs.power_modes import load_twin_with_modes

ENERGY = "Energy of real training by our parser, rails and integral"
CURVE = "Energy against the GPU's clock: a U, and where is its minimum?"
LIMIT = "Energy of training against a GPU's power limit"
LAW = "Time against clocks: a + b / core clock + c / memory clock"
POWER_LAW = "GPU power against its clock: p0 + a f + b f^3"
ROOF = "Rooflines: does any kernel lie above its roof?"
ROOF_ENERGY = "Energy of kernels from operations, bytes and constant power"
SCALING = "How simulated boards follow their clocks, beside real ones"


LICENCES = {rooflines.ORIN: "MIT"}  # of sources that are no sweep


class Part(NamedTuple):
    """Checks of one question on one source.

    Attributes
    ----------
    source : name of a public sweep, or an address
    findings : yields them; NotHereError where the source is not here
    """

    question: str
    source: str
    findings: Callable[[Inputs], Iterable[Finding]]


def _by_sweep(
    question: str, findings: Callable[[str, Inputs], Iterable[Finding]], *names: str
) -> list[Part]:
    return [Part(question, name, partial(findings, name)) for name in names]


PARTS = (
    Part(ENERGY, training_logs.SWEEP, training_logs.findings),
    Part(CURVE, energy_curves.TX2, energy_curves.gpu_clock_findings),
    *_by_sweep(LIMIT, energy_curves.power_limit_findings, *energy_curves.LIMITS),
    *_by_sweep(LAW, clock_laws.findings, "energy-time-fairness-tx2", "ali-a100"),
    *_by_sweep(LAW, clock_laws.findings, "dlbench-caffe", "hkbu-kernels", "ellis-operators"),
    *_by_sweep(LAW, clock_laws.findings, "nv-dvfs-kernels"),
    *_by_sweep(POWER_LAW, clock_laws.power_findings, "energy-time-fairness-tx2", "ali-a100"),
    *_by_sweep(POWER_LAW, clock_laws.power_findings, "hkbu-kernels", "ellis-operators"),
    Part(ROOF, rooflines.ORIN, rooflines.roof_findings),
    Part(ROOF_ENERGY, rooflines.TX2, rooflines.energy_findings),
    *_by_sweep(SCALING, scaling.findings, "translucence-tx1-5000", "translucence-tx2-5000"),
    *_by_sweep(SCALING, scaling.findings, "opml19-tx2"),
    Part(SCALING, training_logs.SWEEP, scaling.stock_mode_findings),
)


def check_external(
    workloads: Sequence[str],
    path: str,
    curves: str,
    root: Path = Path(),
    folder: Path | str = "",
) -> list[Check]:
    """Make all checks that can be made here, and write them.

    Parameters
    ----------
    workloads : paths of the counts of the papers' networks
    path, curves : of the tables, results/tables/external.csv and external_curves.csv
    root : the checkout
    folder : the user's folder of others' repositories; empty: the environment's

    Raises
    ------
    ConfigError : a table that is here cannot be read
    RecordWriteError : the table cannot be written
    """
    twin = load_twin_with_modes(workloads, root)
    inputs = Inputs(root, public_folder(Path(folder) if folder else None), twin)
    checks = [check for part in PARTS for check in checks_of(part, inputs)]
    write_checks(Path(path), checks)
    energy_curves.write_curves(Path(curves), energy_curves.curve_points(inputs))
    return checks


def checks_of(part: Part, inputs: Inputs) -> Iterator[Check]:
    """Yield the checks of a part; one that says why where its source is not here."""
    source, licence = part.source, LICENCES.get(part.source, "none")
    if part.source in inputs.registry.sweeps:
        origin = inputs.registry.source(part.source)
        source, licence = f"{part.source}: {origin.repository}", origin.licence
    try:
        findings = list(part.findings(inputs))
    except NotHereError as error:
        findings = [Finding("all of it", "", "", "", None, NOT_AVAILABLE, error.problem)]
    for finding in findings:
        yield Check(
            part.question,
            finding.subject,
            finding.unit,
            finding.expected,
            finding.observed,
            finding.deviation_pct,
            finding.verdict,
            finding.provenance,
            source,
            licence,
            finding.note,
        )
