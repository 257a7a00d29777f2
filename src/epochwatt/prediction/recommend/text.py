"""The recommended power mode as lines for the terminal."""

from pathlib import Path

from epochwatt.prediction.recommend.command import NAMES, Advice, described, described_fit
from epochwatt.prediction.recommend.recommend import UNITS, Recommendation
from epochwatt.records import files
from epochwatt.text import aligned, counted

PARTS = {
    "cores": "cores",
    "cpu_mhz": "CPU MHz",
    "gpu_mhz": "GPU MHz",
    "emc_mhz": "memory MHz",
    "gpu_share": "share of the GPU that is on",
    "power_limit_w": "power limit",
}
RISKY = 0.05
UNVERIFIED = (
    "unverified: a prediction, nothing was run in this mode; --verify says how to confirm it"
)


def advice_lines(advice: Advice) -> list[str]:
    """Return the answer without its files."""
    chosen = advice.recommendation
    workload = advice.fitted.workload
    within = f"within the budgets: {chosen.n_within:,} of {chosen.n_modes:,} modes"
    return [
        advice.headline,
        f"workload  {described(workload)}, dvfs {workload['dvfs']}",
        *(f"  also fitted: {described_fit(fit)}" for fit in advice.others),
        f"asked     {advice.aim}",
        f"models    {advice.method.title}, of {counted(len(advice.profiled), 'profiled modes')}, "
        f"{counted(len(advice.fitted.runs), 'runs')}",
        f"modes     {_tables(advice)}",
        "",
        f"take      {chosen.mode}",
        "",
        *_expected(advice),
        "",
        *_outside(advice),
        *([within] if advice.request.budgets else []),
        _front(chosen),
    ]


def _tables(advice: Advice) -> str:
    cores, cpu, gpu, emc = map(len, advice.files.board.steps()[:4])
    return (
        f"{advice.recommendation.n_modes:,}: {cores} cores x {cpu} CPU x {gpu} GPU x {emc} memory "
        f"clocks, of {advice.files.source}"
    )


def _expected(advice: Advice) -> list[str]:
    risks, budgets = advice.recommendation.risks, advice.request.budgets
    n_columns = 5 if budgets else 3
    cells = [("", "expected", "90 % interval", "budget", "risk to break it")[:n_columns]]
    for name, estimate in advice.recommendation.estimates.items():
        risk = _percent(risks[name]) if name in risks else "not known"
        budget = (f"{budgets[name]:g}", risk) if name in budgets else ("", "")
        quantity = f"{NAMES[name]} {UNITS[name]}"
        row = (quantity, f"{estimate.value:.4g}", estimate.interval, *budget)
        cells.append(row[:n_columns])
    lines = aligned(cells)
    if advice.request.max_risk is None and any(risk > RISKY for risk in risks.values()):
        lines.append("expected values keep the budgets; for a lower risk, add --max-risk 0.05")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 or not share else "< 1 %"


def _outside(advice: Advice) -> list[str]:
    """Return whether the mode was profiled, else which parts of it lie outside all that were."""
    mode, profiled = advice.recommendation.mode, advice.profiled
    if mode in profiled:
        return ["profiled: the models are fitted to this mode too"]
    lines = [UNVERIFIED]
    for name in advice.recommendation.extrapolated:
        values = [getattr(mode, name) for mode in profiled]
        lines.append(
            f"extrapolated: {PARTS[name]} {getattr(mode, name):g}; profiled are {min(values):g} to "
            f"{max(values):g}"
        )
    if len(lines) == 1:
        lines.append("extrapolated: nothing, each part lies between those of profiled modes")
    return lines


def _front(chosen: Recommendation) -> str:
    front = chosen.front
    if not front:
        return "no Pareto front: energy was not measured"
    ends = [f"{end.epoch_s:.4g} s and {end.energy_wh:.4g} Wh" for end in (front[0], front[-1])]
    return f"Pareto front of time and energy: {counted(len(front), 'modes')}, {' to '.join(ends)}"


def write_block(advice: Advice, root: Path = Path()) -> str | None:
    """Write the nvpmodel block; return its path below the checkout, None where there is none."""
    if advice.block is None:
        return None
    path = advice.folder / "nvpmodel.conf"
    (root / advice.folder).mkdir(parents=True, exist_ok=True)
    files.write_bytes(str(root / path), advice.block.encode(), durable=False)
    return str(path)


def file_lines(advice: Advice, front: list[str], block_path: str | None) -> list[str]:
    """Return the paths of the answer's files, and how to set the mode."""
    return ["", *front, *([block_path] if block_path else []), "", *_use(advice, block_path)]


def block_lines(advice: Advice) -> list[str]:
    """Return the nvpmodel block, or why there is none."""
    if advice.block is None:
        return [
            "",
            "no nvpmodel block: it is made of the board's own nvpmodel.conf, which is not here",
            f"  do: ask on the board (this answer is of {advice.files.source})",
        ]
    return ["", "nvpmodel block:", "", *advice.block.splitlines()]


def _use(advice: Advice, block_path: str | None) -> list[str]:
    mode = advice.recommendation.mode
    numbers = (mode.cores, 1e3 * mode.cpu_mhz, 1e6 * mode.gpu_mhz, 1e6 * mode.emc_mhz)
    words = " ".join(str(round(number)) for number in numbers)
    is_measured = advice.request.backend == "jetson"
    where = "to set it on the board"
    if not is_measured:
        where = "for the real board, once it was asked with --backend jetson: to set a mode there"
    lines = [
        f"{where}, which checks each number (docs/explanation/root-helper.md):",
        f"  sudo epochwatt-helper custom-mode {words}",
        "  sudo epochwatt-helper pin-clocks    # as in the runs, dvfs off",
        "  sudo epochwatt-helper restore       # back to what was before",
    ]
    if block_path and is_measured:
        lines += ["or the block by itself:", f"  sudo nvpmodel -f {block_path} -m {advice.mode_id}"]
    return lines
