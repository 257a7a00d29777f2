"""The recommended power mode: lines for the terminal, and the files of the answer."""

from pathlib import Path

from epochwatt import columns
from epochwatt.board.device.board_files import custom_conf, strongest
from epochwatt.board.records import files
from epochwatt.prediction.data.modes import Mode, PredictionError
from epochwatt.prediction.recommend.command import AIMS, NAMES, Advice, described, described_fit
from epochwatt.prediction.recommend.recommend import REACH
from epochwatt.prediction.recommend.runs import profiled_means
from epochwatt.tables import write_table
from epochwatt.text import ORIGINS, aligned, counted

EQUAL_ENERGY = 0.995  # of the fastest mode's, from which on there is nothing to save


def advice_lines(advice: Advice) -> list[str]:
    """Return the answer without its files."""
    chosen, workload = advice.recommendation, advice.fitted.workload
    cores, cpu, gpu, emc = map(len, advice.files.board.steps()[:4])
    lines = [
        advice.headline,
        f"workload  {described(workload)}, dvfs {workload['dvfs']}",
        *(f"  also fitted: {described_fit(fit)}" for fit in advice.others),
        f"asked     {advice.aim}",
        f"models    {advice.method.title}",
        f"          of {counted(len(advice.profiled), 'profiled modes')}, "
        f"{counted(len(advice.fitted.runs), 'runs')}",
        f"modes     {cores * cpu * gpu * emc:,}: {cores} cores x {cpu} CPU x {gpu} GPU x {emc} "
        f"memory clocks, of {advice.files.source}",
        *_considered(advice),
        "",
        f"take      {_varied(chosen.mode, advice)}",
        "",
        *_estimates(advice),
        "",
        *_extrapolated(advice),
    ]
    if advice.request.budgets:
        lines.append(f"within the budgets: {chosen.n_within:,} of {chosen.n_modes:,} modes")
    if not chosen.front:
        return [*lines, "no Pareto front: energy was not measured"]
    first, last = chosen.front[0], chosen.front[-1]
    ends = [f"{end.epoch_s:.4g} s and {end.energy_wh:.4g} Wh" for end in (first, last)]
    n_modes = counted(len(chosen.front), "modes")
    return [*lines, f"Pareto front of time and energy: {n_modes}, {' to '.join(ends)}"]


def _varied(mode: Mode, advice: Advice) -> str:
    """Return those parts of a mode that the profiled modes differ in, in words."""
    return mode.of_parts([n for n in Mode._fields if n not in advice.recommendation.fixed])


def _considered(advice: Advice) -> list[str]:
    """Return lines that say which modes of the board were left aside, and why."""
    chosen, lines = advice.recommendation, []
    if chosen.fixed:
        fixed = chosen.mode.of_parts(chosen.fixed)
        lines.append(f"all profiled modes have {fixed}, and so has the answer")
    if chosen.n_out_of_reach:
        lowest_mhz = min(mode.emc_mhz for mode in advice.profiled)
        lines.append(
            f"{chosen.n_out_of_reach:,} left out: memory clocks below {lowest_mhz / REACH:g} MHz, "
            "half of the lowest profiled one; their times are not known"
        )
    return [f"          {line}" for line in lines]


def _estimates(advice: Advice) -> list[str]:
    """Return expected values with intervals, budgets and risks as a table."""
    risks, budgets = advice.recommendation.risks, advice.request.budgets
    cells = [
        ["", "expected", "90 % interval", *(["budget", "risk of exceeding it"] if budgets else [])]
    ]
    for name, estimate in advice.recommendation.estimates.items():
        row = [f"{NAMES[name]} {columns.unit(name)}", f"{estimate.value:.4g}", estimate.interval]
        if name in budgets:
            risk = percent(risks[name]) if name in risks else "not known"
            row += [f"{budgets[name]:g}", risk]
        cells.append(row)
    lines, chosen = aligned(cells), advice.recommendation
    if chosen.costs is not None:
        cost, risk_then = chosen.costs
        lines.append(
            f"being that safe costs {100 * cost:.2g} % of {AIMS[advice.request.aim]}: the best "
            f"mode expected to keep the budget has a risk of {percent(risk_then)} (--max-risk 0.5)"
        )
    if (least := chosen.least) is not None and least.energy_part < EQUAL_ENERGY:
        saved = f"{100 * (1 - least.energy_part):.2g} % less energy"
        lines.append(
            f"least energy: {_varied(least.mode, advice)}: {saved} and "
            f"{100 * (least.time_part - 1):.2g} % more time than the fastest within the budgets"
        )
    if chosen.racing_saves is not None:
        lines.append(
            "racing to idle wins: to end early and idle until the deadline costs "
            f"{100 * chosen.racing_saves:.2g} % less energy than a mode that just meets it"
        )
    if not chosen.is_safe:
        lines.append("no mode is as safe as asked: this is the safest one; profile more modes")
    return lines


def percent(share: float) -> str:
    """Return a probability in words."""
    return f"{100 * share:.0f} %" if share >= 0.01 or not share else "< 1 %"


def _extrapolated(advice: Advice) -> list[str]:
    """Return whether the mode was profiled, else which parts of it lie outside all that were."""
    mode, profiled = advice.recommendation.mode, advice.profiled
    if mode in profiled:
        return ["profiled: the models are fitted to this mode too"]
    lines = [
        "unverified: a prediction, nothing was run in this mode; --verify says how to confirm it"
    ]
    for name in advice.recommendation.extrapolated:
        values = [getattr(mode, name) for mode in profiled]
        lines.append(
            f"extrapolated: {columns.label(name)} {getattr(mode, name):g} {columns.unit(name)}; "
            f"profiled are {min(values):g} to {max(values):g}"
        )
    if len(lines) == 1:
        lines.append("extrapolated: nothing, each part lies between those of profiled modes")
    return lines


def write_front(advice: Advice, root: Path = Path()) -> list[dict[str, object]]:
    """Write front.csv, and return its rows: the front, the recommended mode, the profiled ones.

    These have beside what is expected what was observed, where their runs are below `root`.
    """
    fit, chosen = advice.fitted, advice.recommendation
    place = {name: fit.workload[name] for name in ("backend", "device", "instance", "model")}
    place |= {"origin": ORIGINS[advice.request.backend].answer, "method": advice.method.name}

    def row(what: str, mode: Mode, *values: float) -> dict[str, object]:
        numbers = dict(zip(("epoch_s", "power_w", "energy_wh"), map(_rounded, values), strict=True))
        return {**place, "what": what, **mode._asdict(), "cores": int(mode.cores), **numbers}

    rows = [row("front", m.mode, m.epoch_s, m.power_w, m.energy_wh) for m in chosen.front]
    values = [estimate.value for estimate in chosen.estimates.values()]
    bounds = {
        f"{name}_{end}": _rounded(getattr(estimate, end))
        for name, estimate in chosen.estimates.items()
        for end in ("low", "high")
    }
    rows.append(row("recommended", chosen.mode, *values) | bounds)
    if fit.power is not None:
        times, powers = fit.time.mean(advice.profiled), fit.power.mean(advice.profiled)
        seen = profiled_means(advice, root)
        for mode, s, w in zip(advice.profiled, times.tolist(), powers.tolist(), strict=True):
            means = seen.get(mode, {})
            observed = {f"observed_{name}": _rounded(means.get(name)) for name in NAMES}
            rows.append(row("profiled", mode, s, w, s * w / 3600) | observed)
    header = list(dict.fromkeys(name for each in rows for name in each))
    write_table(root / advice.folder / "front.csv", "the Pareto front", header, rows)
    return rows


def _rounded(value: float | None) -> float | str:
    """Return a number to five figures; empty: not known."""
    return "" if value is None else float(f"{value:.5g}")


def nvpmodel_block(advice: Advice) -> str | None:
    """Return the nvpmodel configuration of the mode; None: the board's own is not known.

    Raises PredictionError: the board's nvpmodel cannot set it.
    """
    conf, board, mode = advice.files.conf, advice.files.board, advice.recommendation.mode
    if conf is None:
        return None
    estimates = advice.recommendation.estimates
    expected = [f"{e.value:.4g} {columns.unit(name)}" for name, e in estimates.items()]
    comment = [
        advice.headline,
        f"recommended by epochwatt: {advice.aim}; expected {', '.join(expected)}",
        f"made of the nvpmodel configuration of {advice.files.source}",
    ]
    if advice.request.backend != "jetson":
        comment.append("not for a board: ask there with --backend jetson")
    clocks = round(1e3 * mode.cpu_mhz), round(1e6 * mode.gpu_mhz), round(1e6 * mode.emc_mhz)
    try:
        text = custom_conf(conf, int(mode.cores), *clocks, board.tables)
    except ValueError as error:
        raise PredictionError(str(error), where=f"{board.kind}, {mode}") from error
    return "".join(f"# {line}\n" for line in comment) + text


def write_block(advice: Advice, root: Path = Path()) -> str | None:
    """Write the nvpmodel block; return its path below the checkout, None where there is none."""
    block = nvpmodel_block(advice)
    if block is None:
        return None
    path = advice.folder / "nvpmodel.conf"
    (root / advice.folder).mkdir(parents=True, exist_ok=True)
    files.write_bytes(str(root / path), block.encode(), durable=False)
    return str(path)


def use_lines(advice: Advice, block_path: str | None) -> list[str]:
    """Return how to set the mode, with the block that was written to `block_path`."""
    mode = advice.recommendation.mode
    numbers = (mode.cores, 1e3 * mode.cpu_mhz, 1e6 * mode.gpu_mhz, 1e6 * mode.emc_mhz)
    words = " ".join(str(round(number)) for number in numbers)
    is_measured = advice.request.backend == "jetson"
    where = "to set it on the board" if is_measured else "to set it on a board, once asked there"
    lines = [
        f"{where} (docs/explanation/root-helper.md):",
        f"  sudo epochwatt-helper custom-mode {words}",
        "  sudo epochwatt-helper pin-clocks    # as in the runs, dvfs off",
        "  sudo epochwatt-helper restore       # back to what was before",
    ]
    if block_path and is_measured and advice.files.conf:
        number = strongest(advice.files.conf).id
        lines += ["or the block by itself:", f"  sudo nvpmodel -f {block_path} -m {number}"]
    return lines


def block_lines(advice: Advice) -> list[str]:
    """Return the nvpmodel block, or why there is none."""
    block = nvpmodel_block(advice)
    if block is None:
        return [
            "",
            "no nvpmodel block: it is made of the board's own nvpmodel.conf, which is not here",
            f"  do: ask on the board (this answer is of {advice.files.source})",
        ]
    return ["", "nvpmodel block:", "", *block.splitlines()]
