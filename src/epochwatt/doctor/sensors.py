"""Check the sensors: cost and regularity of the sampler, parts of the power, temperatures."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from epochwatt.board.device import board_files, remedies
from epochwatt.board.records.samples import read_samples
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.discover import no_power_remedy
from epochwatt.board.telemetry.ina3221 import Ina3221Source
from epochwatt.board.telemetry.source import OFFLINE_C, READ_ERRORS, Source
from epochwatt.board.telemetry.tegrastats import TegrastatsSource
from epochwatt.doctor.finding import Finding, info, ok, warning
from epochwatt.doctor.subject import Recording, Subject
from epochwatt.text import counted

# Budgets of docs/decisions/0014; the CPU's holds for four rails at 10 Hz on a PC and is ASSUMEd
# five times as much on the slowest board.
DEVIATION_S = 0.004
CPU_S_PER_MIN = 0.6

_NO_READING = {
    "emc_mhz": "only root may read it; the root helper does so if a power mode sets it",
    "emc_util_pct": "it needs the memory clock, which only root may read",
    "fan_pct": "the board has no fan, or one that controls itself",
}


def sampler(recording: Recording) -> Iterator[Finding]:
    """Check the CPU time of the sampler and how regular each source was."""
    statistics = recording.statistics
    sources: dict[str, Document] = statistics["sources"]
    children_s = sum(row["settings"].get("child_cpu_s") or 0 for row in sources.values())
    minutes = statistics["wall_s"] / 60
    process, child = statistics["cpu_s"] / minutes, children_s / minutes
    jtop = recording.jtop_cpu_s / minutes
    parts = [f"{process:.2f} s of CPU a minute"]
    parts += [f"tegrastats {child:.2f} s"] if child else []
    parts += [f"jtop's service {jtop:.2f} s"] if jtop else []
    costly = process + child + jtop > CPU_S_PER_MIN
    yield Finding(
        "warning" if costly else "ok",
        "sampler",
        f"{', '.join(parts)}; {statistics['wall_s']:.0f} s recorded",
        "power_source: sysfs in the device file costs the least"
        if costly and (child or jtop)
        else "",
    )
    for name, row in sources.items():
        yield from _source(name, row)


def _source(name: str, row: Document) -> Iterator[Finding]:
    """Yield findings on one source of samples: how regular it is, and which columns it has."""
    deviation_s = row["deviation_p99_s"] or 0.0
    message = f"{name}: a row every {1e3 * row['period_s']:.0f} ms ({row['n_samples']} of them), "
    if row["deviation_p99_s"] is None:
        message += "at its own times"
    else:
        message += (
            f"99 % within {1e3 * deviation_s:.2f} ms of the planned time, "
            f"a reading takes {1e3 * row['read_mean_s']:.2f} ms"
        )
    message += f", {counted(row['n_gaps'], 'gaps')}"
    if row["n_gaps"]:
        late, failed = row["n_late"], row["n_failed"]
        why = f" ({row['error']})" if row["error"] else ""
        lost = f"{counted(failed, 'readings')} failed{why}, {late} came too late"
        yield warning("sampler", message, f"{lost}: stop other programs and check the source")
    elif deviation_s > DEVIATION_S:
        yield warning("sampler", message, "stop other programs and try again")
    else:
        yield ok("sampler", message)
    dead = [c for c in row["columns"] if row["nan_cells"].get(c, 0) >= row["n_samples"]]
    if dead:
        reasons = dict.fromkeys(_NO_READING[column] for column in dead if column in _NO_READING)
        yield info("sensors", f"{name}: no {', '.join(dead)}", "; ".join(reasons))
    live = [c for c in row["columns"] if c not in dead]
    yield ok("sensors", f"{name}: {', '.join(live)}")


def power(subject: Subject, recording: Recording) -> Iterator[Finding]:
    """Report what the total power consists of and what it does not include."""
    sources: dict[str, Document] = recording.statistics["sources"]
    with_power = {name: row for name, row in sources.items() if row["scope"]}
    for name, row in with_power.items():
        yield from _replaced_source(subject, name, row["settings"])
        if row["total"] is None:
            yield warning(
                "power",
                f"{name}: no total: {row['settings'].get('no_total')}",
                "the rails are recorded and energy stays empty; attach `epochwatt bug-report` to "
                "an issue and we add this board",
            )
        else:
            mean_w = _mean(recording.folder, name, row["total"])
            rule = row["settings"].get("total_rule") or row["settings"].get("power")
            total = f"{row['scope']}: {mean_w:.2f} W on average, from {name}: {rule}"
            yield Finding("ok" if mean_w == mean_w else "warning", "power", total)
        yield from _limitations(row["settings"])
    if not with_power:
        yield warning(
            "power",
            "no power sensor can be read: times are measured, energy stays empty",
            no_power_remedy(subject.machine.root, subject.device.board),
        )


def _replaced_source(subject: Subject, name: str, settings: Document) -> Iterator[Finding]:
    """Report why the power source is not the configured one."""
    if settings.get("not_sysfs"):
        do = "let your user read those files: ten readings a second bound energies more tightly"
        yield warning("power", f"{settings['not_sysfs']}; {name} is read, once a second", do)
    why = settings.get("fallback")
    if why is None:
        return
    remedy = remedies.remedy_of(why, " ".join(subject.python))
    do = "fix that" if remedy is None else remedy.do
    yield warning("power", why, f"{do}; or power_source: {name} in the device file")


def _limitations(settings: Document) -> Iterator[Finding]:
    """Report what the total does not include, and what contradicts it."""
    for key in ("cannot_be_opened", "errors"):
        for label, why in (settings.get(key) or {}).items():
            yield warning("power", f"rail {label} cannot be read: {why}")
    if settings.get("not_seen"):
        yield info("power", f"not included: {settings['not_seen']}")
    if settings.get("contradictions"):
        yield warning(
            "power",
            settings["contradiction"],
            "do not trust the total: compare it with a meter, and send `epochwatt bug-report`",
        )
    wanted_s, actual_s = settings.get("interval_s"), settings.get("service_interval_s")
    if actual_s is not None and actual_s != wanted_s:
        yield warning(
            "power",
            f"jtop's service samples every {actual_s:g} s, not every {wanted_s:g} s",
            "its first client decides: close other jtop windows and restart jtop.service",
        )


def _mean(folder: Path, source: str, column: str) -> float:
    """Return the mean of a column; NaN where nothing was read."""
    values = read_samples(str(folder), source)[column]
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def other_sources(subject: Subject, recording: Recording) -> Iterator[Finding]:
    """Try the board's power sources that were not recorded; report which would work."""
    root = subject.machine.root
    kind = board_files.board_kind(root)
    for make in (Ina3221Source, TegrastatsSource):
        if not kind or make.name in recording.statistics["sources"]:
            continue
        try:
            source: Source = make(root, kind)
            values = dict(zip(source.columns, source.read(), strict=True))
            source.close()
        except READ_ERRORS as error:
            yield info("power", f"{make.name} would not work: {error}")
            continue
        total = f"{values[source.total]:.2f} W" if source.total else "rails without a total"
        yield info("power", f"{make.name} would work too: {total} now")


def temperatures(subject: Subject) -> Iterator[Finding]:
    """Report the temperature of each thermal zone."""
    zones = []
    for folder in sorted(Path(subject.machine.root, "sys/class/thermal").glob("thermal_zone*")):
        millidegrees = board_files.text(str(folder), "temp")
        if millidegrees.lstrip("-").isdigit() and int(millidegrees) / 1e3 > OFFLINE_C:
            zones.append(f"{board_files.text(str(folder), 'type')} {int(millidegrees) / 1e3:.1f}")
    if zones:
        yield ok("temperature", f"{', '.join(zones)} °C")
    else:
        yield info("temperature", "this machine has no sensor")
