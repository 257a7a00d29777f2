"""The self-test of the sensors: cost and jitter of the sampler, what the power is made of."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.device import board_files
from epochwatt.doctor.finding import Finding
from epochwatt.doctor.subject import Recording, Subject
from epochwatt.records.samples import read_samples
from epochwatt.telemetry.ina3221 import Ina3221Source
from epochwatt.telemetry.source import READ_ERRORS, Source
from epochwatt.telemetry.tegrastats import TegrastatsSource
from epochwatt.text import counted

# Budgets of docs/decisions/0014; the CPU's holds for four rails at 10 Hz on a PC and is ASSUMEd
# five times as much on the slowest board.
DEVIATION_S = 0.004
CPU_S_PER_MIN = 0.6

_NO_READING = {
    "emc_mhz": "only root may read it; the root helper does where a mode sets it",
    "emc_util_pct": "it needs the memory's clock, which only root may read",
    "fan_pct": "a board without a fan, or with a fan of its own control, tells none",
}
_JTOP = (  # words of the reason -> what to do
    ("no jetson-stats", "sudo pip3 install jetson-stats for that interpreter, then restart"),
    ("not active", "sudo systemctl enable --now jtop.service"),
    ("mismatch", "client and service differ: sudo systemctl restart jtop.service"),
    ("version", "client and service differ: sudo systemctl restart jtop.service"),
    ("access", "sudo usermod -aG jtop $USER, then log in again"),
    ("permission", "sudo usermod -aG jtop $USER, then log in again"),
    ("no answer", "sudo systemctl restart jtop.service"),
)


def sampler(recording: Recording) -> Iterator[Finding]:
    """How regular each source was and what all of them cost."""
    told = recording.statistics
    children_s = sum(about["settings"].get("child_cpu_s") or 0 for about in _sources(told).values())
    minutes = told["wall_s"] / 60
    own, child, jtop = (s / minutes for s in (told["cpu_s"], children_s, recording.jtop_cpu_s))
    parts = [f"{own:.2f} s of CPU a minute"]
    parts += [f"tegrastats {child:.2f} s"] if child else []
    parts += [f"jtop's service {jtop:.2f} s"] if jtop else []
    costly = own + child + jtop > CPU_S_PER_MIN
    yield Finding(
        "warning" if costly else "ok",
        "sampler",
        f"{', '.join(parts)}; {told['wall_s']:.0f} s recorded",
        "power_source: sysfs in the device file costs least" if costly and (child or jtop) else "",
    )
    for name, about in _sources(told).items():
        yield from _source(name, about)


def _sources(statistics: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return dict(statistics["sources"])


def _source(name: str, about: dict[str, Any]) -> Iterator[Finding]:
    deviation_s = about["deviation_p99_s"] or 0.0
    found = f"{name}: a row each {1e3 * about['period_s']:.0f} ms ({about['n_samples']} of them), "
    if about["deviation_p99_s"] is None:
        found += "at instants of its own"
    else:
        found += (
            f"99 % within {1e3 * deviation_s:.2f} ms of their instant, "
            f"a reading takes {1e3 * about['read_mean_s']:.2f} ms"
        )
    found += f", {counted(about['n_gaps'], 'gaps')}"
    if about["n_gaps"]:
        late, failed = about["n_late"], about["n_failed"]
        why = f" ({about['error']})" if about["error"] else ""
        lost = f"{counted(failed, 'readings')} failed{why}, {late} came too late"
        yield Finding("warning", "sampler", found, f"{lost}: end other programs, look at it")
    elif deviation_s > DEVIATION_S:
        yield Finding("warning", "sampler", found, "end other programs and try again")
    else:
        yield Finding("ok", "sampler", found)
    dead = [c for c in about["columns"] if about["nan_cells"].get(c, 0) >= about["n_samples"]]
    if dead:
        known = dict.fromkeys(_NO_READING[column] for column in dead if column in _NO_READING)
        yield Finding("info", "sensors", f"{name}: no {', '.join(dead)}", "; ".join(known))
    live = [c for c in about["columns"] if c not in dead]
    yield Finding("ok", "sensors", f"{name}: {', '.join(live)}")


def power(subject: Subject, recording: Recording) -> Iterator[Finding]:
    """What the total power is made of and what it does not see."""
    scopes = {n: a for n, a in _sources(recording.statistics).items() if a["scope"]}
    for name, about in scopes.items():
        yield from _asked_for(name, about["settings"])
        if about["total"] is None:
            yield Finding(
                "warning",
                "power",
                f"{name}: no total: {about['settings'].get('no_total')}",
                "the rails are recorded and energy stays empty; `epochwatt bundle` in an issue "
                "lets us add this board",
            )
        else:
            mean_w = _mean(recording.folder, name, about["total"])
            rule = about["settings"].get("total_rule") or about["settings"].get("power")
            total = f"{about['scope']}: {mean_w:.2f} W on average, from {name}: {rule}"
            yield Finding("ok" if mean_w == mean_w else "warning", "power", total)
        yield from _limits(about["settings"])
    if not scopes:
        yield Finding(
            "warning",
            "power",
            "no power sensor can be read: times are measured and energy stays empty",
            _no_power(subject),
        )


def _asked_for(name: str, settings: dict[str, Any]) -> Iterator[Finding]:
    """Say why the power source is not the one that was asked for."""
    why = settings.get("fallback")
    if why is None:
        return
    do = next((do for word, do in _JTOP if word in why.lower()), "mend that")
    yield Finding("warning", "power", why, f"{do}; or power_source: {name} in the device file")


def _limits(settings: dict[str, Any]) -> Iterator[Finding]:
    """Tell what the total does not see, and what speaks against it."""
    for key in ("cannot_be_opened", "errors"):
        for label, why in (settings.get(key) or {}).items():
            yield Finding("warning", "power", f"rail {label} cannot be read: {why}")
    if settings.get("not_seen"):
        yield Finding("info", "power", f"not seen: {settings['not_seen']}")
    if settings.get("contradictions"):
        yield Finding(
            "warning",
            "power",
            settings["contradiction"],
            "do not trust the total; compare with a meter, and send `epochwatt bundle`",
        )
    ours, theirs = settings.get("interval_s"), settings.get("service_interval_s")
    if theirs is not None and theirs != ours:
        yield Finding(
            "warning",
            "power",
            f"jtop's service samples every {theirs:g} s, not every {ours:g} s",
            "its first client decides: close other jtop windows, restart jtop.service",
        )


def _mean(folder: Path, source: str, column: str) -> float:
    """Return the mean of a column; NaN where nothing was read."""
    values = read_samples(str(folder), source)[column]
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def _no_power(subject: Subject) -> str:
    root = subject.machine.root
    if subject.device.board:
        return "see whether the driver of the INA3221 is loaded: ls /sys/bus/i2c/drivers/ina3221*"
    if Path(root, "sys/class/powercap/intel-rapl:0/energy_uj").exists():
        return "the processor counts its energy: sudo chmod a+r /sys/class/powercap/*/energy_uj"
    if os.path.exists("/proc/driver/nvidia"):
        return "the GPU counts its energy: pip install nvidia-ml-py for the measuring interpreter"
    return "none is known for this machine; a plug meter's log can be set beside the times"


def other_sources(subject: Subject, recording: Recording) -> Iterator[Finding]:
    """Which power sources of the board would work beside the one that is used."""
    root = subject.machine.root
    kind = board_files.board_kind(root)
    for make in (Ina3221Source, TegrastatsSource):
        if not kind or make.name in recording.statistics["sources"]:
            continue
        try:
            source: Source = make(root, kind)
            told = dict(zip(source.columns, source.read(), strict=True))
            source.close()
        except READ_ERRORS as error:
            yield Finding("info", "power", f"{make.name} would not work: {error}")
            continue
        total = f"{told[source.total]:.2f} W" if source.total else "rails without a total"
        yield Finding("info", "power", f"{make.name} would work too: {total} now")


def temperatures(subject: Subject) -> Iterator[Finding]:
    """Which thermal zones there are and what they tell."""
    found = []
    for folder in sorted(Path(subject.machine.root, "sys/class/thermal").glob("thermal_zone*")):
        told = board_files.text(str(folder), "temp")
        if told.lstrip("-").isdigit() and int(told) > -200_000:
            found.append(f"{board_files.text(str(folder), 'type')} {int(told) / 1e3:.1f}")
    if found:
        yield Finding("ok", "temperature", f"{', '.join(found)} °C")
    else:
        yield Finding("info", "temperature", "this machine tells none")
