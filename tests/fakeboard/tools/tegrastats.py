"""Stand-in for a board's tegrastats.

It prints a line per interval in the board's own dialect, made from the board's files at that
moment. As on a board, only root sees the memory's clock and the GPU's.

Sources: docs/reference/sources.md.
"""

import argparse
import os
import time
from typing import Any

from tests.fakeboard.tools.board_files import BoardFiles

MC_ALL = "sys/kernel/actmon_avg_activity/mc_all"
JP6_ENGINES = "NVENC off NVDEC off NVJPG off NVJPG1 off VIC off OFA off NVDLA0 off NVDLA1 off"

Ticks = dict[str, tuple[int, int]]  # busy and all, of each CPU


class Tegrastats:
    """The lines of one run: means of the rails count from its beginning."""

    def __init__(self, board: BoardFiles) -> None:
        self._board = board
        self._dialect = board.facts["dialect"]
        self._is_root = os.geteuid() == 0
        self._sums: dict[str, float] = {}
        self._lines = 0
        self._before = self._ticks()

    def line(self) -> str:
        """Return the next line; raises OSError and ValueError."""
        self._lines += 1
        words = [self._memory(), self._cpus()]
        if self._is_root:
            hz = self._board.number(self._board.emc["now"])
            load = 100 * self._board.number(MC_ALL) // max(1, hz // 1000)
            words.append(f"EMC_FREQ {load}%@{hz // 1000000}")
        elif self._dialect != "jp6":
            words.append("EMC_FREQ 0%")
        if self._board.facts["has_gpu_load"] or self._is_root:
            words.append("GR3D_FREQ " + self._gpu())
        words.extend(self._engines())
        words.extend(self._temperatures())
        words.extend(self._rails())
        if self._dialect != "jp4":
            words.insert(0, time.strftime("%m-%d-%Y %H:%M:%S"))
        return " ".join(words)

    def _memory(self) -> str:
        """Return RAM and swap; Nano also prints its small internal RAM."""
        info = {}
        for row in self._board.text("proc/meminfo").splitlines():
            key, _, value = row.partition(":")
            info[key] = int(value.split()[0]) // 1024
        ram = info["MemTotal"] - info["MemFree"] - info["Buffers"] - info["Cached"]
        swap = info["SwapTotal"] - info["SwapFree"]
        line = "RAM {}/{}MB (lfb {}x4MB) SWAP {}/{}MB (cached 0MB)".format(
            ram, info["MemTotal"], info["MemFree"] // 8, swap, info["SwapTotal"]
        )
        is_nano = self._board.facts["kind"] == "nano"
        return line + " IRAM 0/252kB(lfb 252kB)" if is_nano and self._is_root else line

    def _ticks(self) -> Ticks:
        ticks_of = {}
        for row in self._board.text("proc/stat").splitlines():
            name, _, rest = row.partition(" ")
            if name.startswith("cpu") and name != "cpu":
                ticks = [int(word) for word in rest.split()]
                ticks_of[name] = (sum(ticks) - ticks[3], sum(ticks))
        return ticks_of

    def _cpus(self) -> str:
        board, now, shown = self._board, self._ticks(), []
        for folder, cpus in board.clusters():
            for cpu in cpus:
                name = f"cpu{cpu}"
                if name not in now:
                    shown.append("off")
                    continue
                busy, total = (
                    a - b for a, b in zip(now[name], self._before.get(name, (0, 0)), strict=False)
                )
                mhz = board.number(folder + "scaling_cur_freq") // 1000
                shown.append(f"{100 * busy // max(1, total)}%@{mhz}")
        self._before = now
        return "CPU [{}]".format(",".join(shown))

    def _gpu(self) -> str:
        facts = self._board.facts
        mhz = self._board.number(facts["gpu"] + "/cur_freq") // 1000000
        if not facts["has_gpu_load"]:
            return "@[{}]".format(",".join([str(mhz)] * facts["gpcs"]))
        load = self._board.number(facts["gpu_device"] + "/load") // 10
        if not self._is_root:
            return f"{load}%"
        if self._dialect == "jp4":
            return f"{load}%@{mhz}"
        return "{}%@[{}]".format(load, ",".join([str(mhz)] * facts["gpcs"]))

    def _engines(self) -> list[str]:
        if not self._is_root:
            return []
        if self._dialect == "jp6":
            return [JP6_ENGINES, "PVA0_FREQ off", "APE 174"]
        if self._dialect == "jp5":
            return ["VIC_FREQ 115", "APE 174"]
        return ["APE 25"] if self._board.facts["kind"] == "nano" else ["APE 150", "MTS fg 0% bg 7%"]

    def _temperatures(self) -> list[str]:
        """Return the zones; one that does not answer is -256, or left out by JetPack 6."""
        words = []
        for number, zone in enumerate(self._board.facts["zones"]):
            name = zone["type"].split("-")[0].split("_")[0]
            try:
                value = self._board.number(f"sys/class/thermal/thermal_zone{number}/temp")
            except (OSError, ValueError):
                if self._dialect == "jp6":
                    continue
                value = -256000
            words.append(f"{name}@{value / 1000.0:g}C")
        return words

    def _rails(self) -> list[str]:
        unit = "" if self._dialect == "jp4" else "mW"
        words = []
        for rail in self._board.facts["rails"]:
            label = rail["label"]
            if label not in self._board.facts["tegrastats_rails"]:
                continue
            power_mw = self._power_mw(rail)
            if power_mw is not None:
                key = "{}/{}".format(rail["chip"], rail["channel"])
                self._sums[key] = self._sums.get(key, 0.0) + power_mw
                mean_mw = int(self._sums[key] / self._lines)
                words.append(f"{label} {power_mw}{unit}/{mean_mw}{unit}")
        return words

    def _power_mw(self, rail: dict[str, Any]) -> int | None:
        """Return what a channel measures; None: it does not answer."""
        if rail["label"] == "NC":
            return 0
        try:
            if "power" in rail:
                return self._board.number(rail["power"]) * rail["unit_uw"] // 1000
            return self._board.number(rail["volt"]) * self._board.number(rail["curr"]) // 1000
        except (OSError, ValueError):
            return None


def main(root: str, words: list[str]) -> int:
    """Print lines until it is ended."""
    parser = argparse.ArgumentParser(prog="tegrastats")
    parser.add_argument("--interval", type=int, default=1000, help="milliseconds")
    interval_s = parser.parse_args(words).interval / 1000.0
    stats = Tegrastats(BoardFiles(root))
    due_s = time.monotonic()
    try:
        while True:
            due_s += interval_s
            time.sleep(max(0.0, due_s - time.monotonic()))
            print(stats.line(), flush=True)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(0)  # nobody reads what is left in the buffer
