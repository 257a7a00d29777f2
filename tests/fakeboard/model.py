"""Model of a fake board: power, temperature and counters from load and clocks.

Power of a part: a share for its clock, and a share for its work that grows with load, clock and
voltage squared (which is taken to follow the clock's square root, so: load * clock ** 2).
"""

import contextlib
import math
import os

from tests.fakeboard.tools.board_files import NVFANCONTROL, BoardFiles

FAULTS = {
    "rail_stops": "label of the rail whose channel has nothing to read any more; * = every rail",
    "throttling": "true: clocks at 60 %, the over-current counter and the cooling states go up",
    "held_back": "share of each CPU clock that the hardware grants while cpufreq shows the whole",
    "gpu_held": "share of the GPU's highest clock that it does not exceed, whatever is set",
    "swap_growth": "swap that is filled, KiB each second",
    "busy": "load of other programs, 0 to 1",
}
THROTTLED = 0.6  # of the highest clock

AMBIENT_C, RISE_C, WARM_UP_S = 28.0, 48.0, 20.0  # rise at full power, fan off; time constant
PLACES = {"cpu": 1.0, "gpu": 0.95, "board": 0.6}  # share of the rise
PMIC_C = 50.0
_TICKS_PER_S = 100.0


def parts_w(
    watts: dict[str, float], clocks: dict[str, float], cpu: float, gpu: float, online: float
) -> dict[str, float]:
    """Return the power of each part, W, from `watts` at full load and highest clocks.

    All else are shares: of the highest `clocks`, of the load of CPU and GPU (the memory is as busy
    as the busier of the two), of the CPUs `online`.
    """
    return {
        "cpu": watts["cpu"] * online * (0.1 * clocks["cpu"] + 0.9 * cpu * clocks["cpu"] ** 2),
        "gpu": watts["gpu"] * (0.1 * clocks["gpu"] + 0.9 * gpu * clocks["gpu"] ** 2),
        "memory": watts["memory"] * clocks["emc"] * (0.4 + 0.6 * max(cpu, gpu)),
        "soc": watts["soc"],
        "io": watts["io"],
    }


class Model:
    """A board's state, and the files that show it; `step` lets time pass."""

    def __init__(self, root: str) -> None:
        self.board = BoardFiles(root)
        self.facts = self.board.facts
        self._full_w = sum(self.facts["watts"].values())
        self._temps_c = dict.fromkeys(PLACES, AMBIENT_C + 0.2 * RISE_C)
        self._busy_s = dict.fromkeys(self.board.cpus(), 0.0)
        self._idle_s = dict.fromkeys(self.board.cpus(), 0.0)
        self._uptime_s = self._swap_kib = self._throttled_s = self._slow_due_s = 0.0

    def step(self, dt_s: float, load: float) -> float:
        """Let a time pass under a load (0 to 1) of CPUs and GPU; return the total power, W."""
        faults = self.board.faults()
        cpu = min(1.0, load + float(faults.get("busy", 0.0)))
        throttled = bool(faults.get("throttling"))
        online = self.board.online()
        limit = THROTTLED if throttled else 1.0
        gpu_limit = min(limit, float(faults.get("gpu_held", 1.0)))
        clocks = self.board.set_clocks(cpu, load, limit, gpu_limit)
        share_on = len(online) / len(self._busy_s)
        parts = parts_w(self.facts["watts"], clocks, cpu, load, share_on)
        power_w = self._write_rails(parts, str(faults.get("rail_stops", "")))
        if self.facts["has_gpu_load"]:
            self.board.write(self.facts["gpu_device"] + "/load", round(1000 * load))
        emc_khz = clocks["emc"] * self.facts["emc_hz"][-1] / 1000.0
        mc_all = "sys/kernel/actmon_avg_activity/mc_all"
        self.board.write(mc_all, round(0.6 * max(cpu, load) * emc_khz))
        self._uptime_s += dt_s
        for cpu_id in online:
            self._busy_s[cpu_id] += dt_s * cpu
            self._idle_s[cpu_id] += dt_s * (1.0 - cpu)
        # a CPU that is off has no line, and its time stays in the sum
        total = _stat_line("cpu", sum(self._busy_s.values()), sum(self._idle_s.values()))
        rows = [_stat_line(f"cpu{n}", self._busy_s[n], self._idle_s[n]) for n in online]
        self._write_lines("proc/stat", [total, *rows])
        self._write_throttling(dt_s, throttled)
        self._swap_kib += dt_s * float(faults.get("swap_growth", 0.0))
        speed = self.board.number(self.facts["fan"]["pwm"]) / 255.0
        rise_c = RISE_C * power_w / self._full_w * (1.0 - 0.4 * speed)
        for place, share in PLACES.items():
            missing_c = AMBIENT_C + share * rise_c - self._temps_c[place]
            self._temps_c[place] += missing_c * (1.0 - math.exp(-dt_s / WARM_UP_S))
        if self._uptime_s >= self._slow_due_s:  # ten times a second would tell nothing more
            self._slow_due_s = self._uptime_s + 0.5
            self._write_memory(load)
            temps_c = {**self._temps_c, "pmic": PMIC_C}
            for number, zone in enumerate(self.facts["zones"]):
                if zone["place"] != "off":
                    value = round(1000.0 * temps_c[zone["place"]])
                    self.board.write(f"sys/class/thermal/thermal_zone{number}/temp", value)
            self._write_fan()
        return power_w

    def _write_rails(self, parts: dict[str, float], stopped: str) -> float:
        """Write what the sensors measure; return the total power as its rails say, W."""
        total_mw = 0.0
        for rail in self.facts["rails"]:
            if rail["label"] == "NC":
                continue
            power_w = sum(share * parts[part] for part, share in rail["parts"].items())
            volt_mv, current_ma = rail["volt_mv"], round(1e6 * power_w / rail["volt_mv"])
            values = {"volt": volt_mv, "curr": current_ma}
            power_mw = volt_mv * current_ma / 1000.0
            if "power" in rail:
                values["power"] = volt_mv * current_ma // rail["unit_uw"]
                power_mw = values["power"] * rail["unit_uw"] / 1000.0
            if rail["label"] in self.facts["total"]:
                total_mw += power_mw
            for key, value in values.items():
                if stopped in ("*", rail["label"]):
                    os.truncate(self.board.path(rail[key]), 0)
                else:
                    self.board.write(rail[key], value)
        return total_mw / 1000.0

    def _write_throttling(self, dt_s: float, throttled: bool) -> None:
        if not throttled and not self._throttled_s:
            return
        events = math.ceil(self._throttled_s)
        self._throttled_s = self._throttled_s + dt_s if throttled else 0.0
        if self.facts["oc"] is not None:
            new = max(0, math.ceil(self._throttled_s) - events)
            self.board.write(self.facts["oc"], self.board.number(self.facts["oc"]) + new)
            self.board.write(self.facts["rails"][0]["alarm"], int(throttled))
        for folder in self.facts["throttlers"]:
            self._set_cooler(folder, 3 if throttled else 0)

    def _set_cooler(self, folder: str, state: int) -> None:
        """Set a cooling device; since JetPack 5 the kernel counts the changes."""
        changes = folder + "stats/total_trans"
        if self.board.number(folder + "cur_state") != state and self.board.exists(changes):
            self.board.write(changes, self.board.number(changes) + 1)
        self.board.write(folder + "cur_state", state)

    def _write_fan(self) -> None:
        """Let the fan follow the temperature, unless its control was stopped."""
        fan = self.facts["fan"]
        if self.board.text(fan["control"] or NVFANCONTROL) == "1":
            share = (self._temps_c["cpu"] - 40.0) / 35.0
            self.board.write(fan["pwm"], round(255 * min(1.0, max(0.0, share))))
        pwm = self.board.number(self.facts["fan"]["pwm"])
        if fan["now"] != fan["pwm"]:
            self.board.write(fan["now"], pwm)
        self.board.write(fan["rpm"], 20 * pwm)
        self._set_cooler("sys/class/thermal/cooling_device0/", pwm // 26)

    def _write_memory(self, load: float) -> None:
        """Write memory, swap, load average and up-time."""
        total, swap = 1024 * self.facts["ram_mib"], 1024 * self.facts["swap_mib"]
        used = int(total * (0.2 + 0.3 * load))
        self._swap_kib = min(self._swap_kib, float(swap))
        info = {
            "MemTotal": total,
            "MemFree": total - used - total // 8,
            "MemAvailable": total - used,
            "Buffers": total // 40,
            "Cached": total // 8 - total // 40,
            "SwapTotal": swap,
            "SwapFree": swap - int(self._swap_kib),
        }
        self._write_lines("proc/meminfo", [f"{k + ':':<16}{v:>8} kB" for k, v in info.items()])
        self._write_lines("proc/vmstat", ["pswpin 0", f"pswpout {int(self._swap_kib) // 4}"])
        header = "Filename\t\t\t\tType\t\tSize\tUsed\tPriority"
        row = f"/dev/zram0                              partition\t{swap}\t{int(self._swap_kib)}\t5"
        self._write_lines("proc/swaps", [header, row])
        average = load * len(self._busy_s)
        self._write_lines("proc/loadavg", [f"{average:.2f} {average:.2f} {average:.2f} 1/99 1000"])

    def _write_lines(self, name: str, lines: list[str]) -> None:
        """Write a text in place; a handle that stays open sees the new one."""
        data = ("\n".join(lines) + "\n").encode()
        fd = os.open(self.board.path(name), os.O_WRONLY)
        with contextlib.closing(os.fdopen(fd, "wb", buffering=0)) as file:
            file.write(data)
            if os.fstat(fd).st_size > len(data):
                os.ftruncate(fd, len(data))


def _stat_line(name: str, busy_s: float, idle_s: float) -> str:
    """Return user nice system idle iowait irq softirq steal guest guest_nice, ticks."""
    return f"{name} {round(busy_s * _TICKS_PER_S)} 0 0 {round(idle_s * _TICKS_PER_S)} 0 0 0 0 0 0"
