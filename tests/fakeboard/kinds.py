"""Kinds of fake boards: one for each release of each kind in `device.kinds`.

ASSUME: watts, losses, swap and what a kind leaves open (a sensor's address, names of hwmon devices)
are of the right size or form and nothing more.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from epochwatt.board.device.board_files import Mode, conf_text, parse_conf
from epochwatt.board.device.identity import jetpack
from epochwatt.board.device.kinds import KINDS as BOARD_KINDS
from epochwatt.board.device.kinds import POWER_PARTS, Rail, Release, StockMode
from epochwatt.board.device.kinds import Kind as BoardKind
from epochwatt.board.device.stock_modes import gpu_folder, stock_conf
from epochwatt.errors import ConfigError

INPUT_LOSSES = 1.12  # an input rail measures the losses of the module's converters as well
NC = "NC"  # label of a channel without a wire
CHIPS = {"ina3221": "1-0040", "ina238": "1-0044"}  # of rails whose sensor's address is not known
# nvpmodel.conf files that NVIDIA published under Apache-2.0; their modes are not the stock ones
RECORDED = Path(__file__).parents[1] / "data/nvpmodel"
_RECORDED = {
    "agx_xavier": "nvpmodel_template_xavier_agx.conf.in",
    "xavier_nx": "nvpmodel_template_xavier_nx.conf.in",
    "agx_orin-jp5": "nvpmodel_template_orin.conf.in",
}
HWMON = ("pwmfan", "pwm_tach", "soctherm_oc")  # and the sensors, where a kind does not say

_DEFAULT_W = {"cpu": 15.0, "gpu": 30.0, "memory": 5.0, "soc": 4.0, "io": 5.0}
_WATTS = {
    "nano": {"cpu": 3.0, "gpu": 4.0, "memory": 1.2, "soc": 0.6, "io": 0.8},
    "xavier_nx": {"cpu": 6.0, "gpu": 8.0, "memory": 1.5, "soc": 1.4, "io": 1.0},
    "agx_xavier": {"cpu": 12.0, "gpu": 20.0, "memory": 3.2, "soc": 4.5, "io": 4.5},
    "agx_orin": {"cpu": 16.0, "gpu": 26.0, "memory": 3.0, "soc": 3.0, "io": 4.0},
    "orin_nano": {"cpu": 4.0, "gpu": 5.0, "memory": 1.5, "soc": 1.5, "io": 1.5},
}
_PLACES = (  # beginning of a thermal zone's name -> where it is; the part is off: no temperature
    ("cv", "off"),
    ("pmic", "pmic"),
    ("gpu|pll|tdiode", "gpu"),
    ("ao|aux|thermal-fan|tboard", "board"),
    ("", "cpu"),
)


@dataclass(frozen=True)
class Channel:
    """A channel of a sensor: its share of what each part of the board draws."""

    driver: str
    chip: str  # bus and address
    channel: int
    label: str
    parts: dict[str, float]
    volt_mv: int


@dataclass(frozen=True)
class FakeKind:
    """One kind of board with one release of its software, as its files and tools need it."""

    name: str
    board: BoardKind
    release: Release
    serial: str

    @property
    def l4t(self) -> tuple[int, str]:
        major, _, revision = self.release.l4t.partition(".")
        return int(major), revision

    @property
    def jetpack(self) -> int:
        return int(jetpack(self.release.l4t).partition(".")[0])

    @property
    def modes(self) -> tuple[StockMode, ...]:
        return self.release.modes

    @property
    def gpu(self) -> str:
        return gpu_folder(self.release)

    @property
    def cpu_khz(self) -> tuple[int, ...]:
        return self.release.cpu_khz or self.board.cpu_khz

    @property
    def gpu_hz(self) -> tuple[int, ...]:
        return self.release.gpu_hz or self.board.gpu_hz

    @property
    def emc_hz(self) -> tuple[int, ...]:
        return self.release.emc_hz or self.board.emc_hz

    @cached_property
    def conf(self) -> str:
        """Return its nvpmodel.conf: parameters as recorded where a licence allows it.

        The stock modes are made of facts. Clocks that no fact names (of video engines, say) are in
        each mode what they are in the recorded one.
        """
        stock = stock_conf(self.board, self.release)
        recorded = RECORDED / _RECORDED.get(self.name, "none")
        if not recorded.exists():
            made_up = "# made up for a fake board (epochwatt stand-in)\n" + stock.text
            header = "< PARAM TYPE=CLOCK NAME=EMC >"  # NVIDIA's files lack a blank since JetPack 6
            return made_up.replace(
                header, header.replace(" ", "", 1) if self.jetpack > 5 else header
            )
        text = recorded.read_text("utf-8")
        example = parse_conf(re.sub(r"{[^}]*}", "0", text)).modes[0]
        more = [row for row in example.settings if row[0] not in stock.params]
        modes = [Mode(mode.id, mode.name, mode.settings + more) for mode in stock.modes]
        return text.partition("< POWER_MODEL")[0] + conf_text({}, modes, stock.default_id)

    @property
    def caps(self) -> list[str]:
        """Return the files of clocks that have a limit and no table: memory, accelerators."""
        kinds = ("MAX_FREQ_KNEXT", "MAX_FREQ") if self.jetpack >= 5 else ("MAX_FREQ",)
        params = [param.paths for param in parse_conf(self.conf).params.values()]
        limits = [
            paths for paths in params if paths and set(paths) <= {"MAX_FREQ_KNEXT", "MAX_FREQ"}
        ]
        return [next(paths[k] for k in kinds if k in paths).lstrip("/") for paths in limits]

    @property
    def gpu_links(self) -> dict[str, str]:
        """Return further names of the GPU's folders: link -> target."""
        device = self.release.gpu_device
        newer = {"sys/devices/platform/gpu.0", device.replace("bus@0/", "")} - {device}
        links = dict.fromkeys(sorted(newer) if self.jetpack > 5 else ["sys/devices/gpu.0"], device)
        return links if self.jetpack < 5 else links | {device + "/devfreq_dev": self.gpu}

    @property
    def hwmon(self) -> tuple[str, ...]:
        """Return what hwmon0, 1, ... are; there are none before JetPack 5."""
        if self.jetpack < 5:
            return ()
        return self.release.hwmon or (*HWMON, *sorted({c.chip for c in self.channels}))

    @property
    def drivers(self) -> dict[str, str]:
        """Return the driver of each sensor by its chip."""
        return {channel.chip: channel.driver for channel in self.channels}

    @property
    def watts(self) -> dict[str, float]:
        """Return the power of each part at full load and highest clocks, W."""
        return _WATTS.get(self.board.name, _DEFAULT_W)

    @property
    def zones(self) -> list[dict[str, str]]:
        """Return type and place of each thermal zone; "off": its part has no power."""
        return [{"type": name, "place": _place(name)} for name in self.release.zones]

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Return the channels of the sensors; JetPack 4 counts a chip's from 0."""
        down = 1 if self.jetpack < 5 else 0
        wired = [
            Channel(
                driver=rail.sensor,
                chip=rail.chip or CHIPS[rail.sensor],
                channel=(rail.channel or n) - down,
                label=rail.label,
                parts=_parts(rail),
                volt_mv=rail.volt_mv,
            )
            for n, rail in enumerate(self.board.rails, 1)
        ]
        free = [
            Channel("ina3221", chip, n - down, NC, {}, 0) for chip, n in self.board.not_connected
        ]
        return tuple(sorted([*wired, *free], key=lambda channel: (channel.chip, channel.channel)))

    @property
    def total(self) -> tuple[str, ...]:
        """Return the labels of the rails that no other one feeds."""
        return tuple(rail.label for rail in self.board.rails if rail.parent is None)


def _parts(rail: Rail) -> dict[str, float]:
    losses = INPUT_LOSSES if set(rail.feeds) == set(POWER_PARTS) else 1.0
    return {part: losses * share for part, share in rail.feeds.items()}


def _place(zone: str) -> str:
    return next(place for name, place in _PLACES if re.match(name, zone.lower()))


def _all_kinds() -> dict[str, FakeKind]:
    """Return name -> kind: agx_orin-jp6 is AGX Orin with JetPack 6.

    Where a board has several releases of one JetPack, the oldest bears its name alone, the others
    the whole number: orin_nano and orin_nano-jp6.2. So does that of JetPack 4.
    """
    fakes: dict[str, FakeKind] = {}
    for board in BOARD_KINDS.values():
        majors = [jetpack(release.l4t).partition(".")[0] for release in board.releases]
        for release, major in zip(board.releases, majors, strict=True):
            number = major if len(set(majors)) == len(majors) else jetpack(release.l4t)
            is_alone = major == "4" or (number != major and release is board.releases[0])
            name = board.name if len(majors) == 1 or is_alone else f"{board.name}-jp{number}"
            fakes[name] = FakeKind(name, board, release, f"1421000{len(fakes) + 1:06d}")
    return fakes


KINDS = _all_kinds()


def find_kind(name: str) -> FakeKind:
    """Return a fake kind by its name; ConfigError lists those that there are."""
    if name not in KINDS:
        raise ConfigError(f"unknown fake board {name!r}", allowed=KINDS)
    return KINDS[name]
