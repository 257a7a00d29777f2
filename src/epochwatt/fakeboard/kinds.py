"""The boards that can be played: their tables, files, rails and power modes.

Sources: docs/sources.md.
ASSUME: watts, voltages and temperatures are of the right size and nothing more; cooling devices,
idle states and the modes of Orin Nano are from memory.
"""

from dataclasses import dataclass, field, replace

MHZ, KHZ = 1_000_000, 1000  # Hz


@dataclass(frozen=True)
class Mode:
    """A power mode: clocks in the units of nvpmodel.conf, -1 = no limit, memory 0 = no cap."""

    id: int
    name: str
    cores: int
    cpu_khz: tuple[int, int]  # lowest, highest
    gpu_hz: tuple[int, int]
    emc_hz: int = 0
    tpc_mask: int | None = None
    dla_hz: int | None = None


@dataclass(frozen=True)
class Rail:
    """A channel of a sensor: its share of what each part of the board draws."""

    chip: str  # bus and address
    channel: int
    label: str
    parts: dict[str, float] = field(default_factory=dict)
    volt_mv: int = 5000


@dataclass(frozen=True)
class Zone:
    """A thermal zone: where it is, or "off" when the part it is of has no power."""

    type: str
    place: str


@dataclass(frozen=True)
class Kind:
    """One kind of board with one release of its software."""

    name: str
    kind: str  # as board code calls it
    model: str
    compatible: tuple[str, ...]
    serial: str
    soc: str
    l4t: tuple[int, str]  # release, revision
    clusters: tuple[tuple[int, ...], ...]
    cpu_param: str
    cpu_khz: tuple[int, ...]
    gpu_device: str  # folder
    gpu_links: tuple[str, ...]  # further names of that folder
    gpu_hz: tuple[int, ...]
    emc_layout: str
    emc_hz: tuple[int, ...]
    idle_states: tuple[str, ...]
    dialect: str  # of tegrastats: jp4, jp5 or jp6
    hwmon: tuple[str, ...]  # what hwmon0, 1, ... are; () before JetPack 5
    zones: tuple[Zone, ...]
    rails: tuple[Rail, ...]
    total: tuple[str, ...]  # rails that add up to the module's power
    watts: dict[str, float]  # of each part at full load and highest clocks
    ram_mib: int
    swap_mib: int
    modes: tuple[Mode, ...]
    default_mode: int
    emc_top_is_0: bool = False  # nvpmodel takes the highest clock only as 0
    gpcs: int = 1
    dla_params: dict[str, str] = field(default_factory=dict)  # clock and its file

    @property
    def gpu(self) -> str:
        """The GPU's devfreq folder."""
        return f"{self.gpu_device}/devfreq/{self.gpu_device.rpartition('/')[2]}"

    @property
    def jetpack(self) -> int:
        """The major number of the JetPack."""
        return {32: 4, 34: 5, 36: 6}[self.l4t[0]]


def _steps(first: int, last: int, step: int) -> tuple[int, ...]:
    """Return first, first + step, ... below last, and last."""
    return (*range(first, last, step), last)


def _zones(places: str) -> tuple[Zone, ...]:
    """Return zones from words `type=place`."""
    return tuple(Zone(*word.split("=")) for word in places.split())


_ALL_PARTS = ("cpu", "gpu", "mem", "soc", "io")

_NX_RAILS = (
    Rail("7-0040", 0, "VDD_IN", dict.fromkeys(_ALL_PARTS, 1.12)),  # with its converters' losses
    Rail("7-0040", 1, "VDD_CPU_GPU_CV", {"cpu": 1.0, "gpu": 1.0}),
    Rail("7-0040", 2, "VDD_SOC", {"soc": 1.0}),
)
_ORIN_RAILS = (
    Rail("1-0040", 1, "VDD_GPU_SOC", {"gpu": 1.0, "soc": 1.0}, 19800),
    Rail("1-0040", 2, "VDD_CPU_CV", {"cpu": 1.0}, 19800),
    Rail("1-0040", 3, "VIN_SYS_5V0", {"mem": 1.0, "io": 1.0}, 5040),
    Rail("1-0041", 1, "NC"),
    Rail("1-0041", 2, "VDDQ_VDD2_1V8AO", {"mem": 0.9}, 5040),  # hangs below VIN_SYS_5V0
    Rail("1-0041", 3, "NC"),
)
_XAVIER_DLA = {"DLA_CORE": "sys/kernel/nvpmodel_emc_cap/nafll_dla"}
_HOST1X = "sys/devices/platform/13e40000.host1x/"
_ORIN_DLA = {
    "DLA0_CORE": _HOST1X + "15880000.nvdla0/acm/clk_cap/dla0_core",
    "DLA1_CORE": _HOST1X + "158c0000.nvdla1/acm/clk_cap/dla1_core",
}
_XAVIER_EMC_MHZ = (204, 408, 665.6, 800, 1065.6, 1331.2, 1600, 1866, 2133)
_XAVIER_EMC = tuple(round(mhz * MHZ) for mhz in _XAVIER_EMC_MHZ)
_XAVIER_GPU_LINKS = ("sys/devices/gpu.0",)
_ORIN_ZONES_JP6 = "cpu gpu cv0=off cv1=off cv2=off soc0 soc1 soc2 tj"


def _zones_jp6() -> tuple[Zone, ...]:
    words = [word.partition("=") for word in _ORIN_ZONES_JP6.split()]
    return tuple(
        Zone(f"{name}-thermal", place or ("gpu" if name == "gpu" else "cpu"))
        for name, _, place in words
    )


NANO = Kind(
    name="nano",
    kind="nano",
    model="NVIDIA Jetson Nano Developer Kit",
    compatible=("nvidia,p3450-0000", "nvidia,jetson-nano", "nvidia,tegra210"),
    serial="1421019000001",
    soc="tegra210",
    l4t=(32, "6.1"),
    clusters=((0, 1, 2, 3),),
    cpu_param="CPU_A57",
    cpu_khz=tuple(
        round(mhz * KHZ)
        for mhz in (
            *(102, 204, 307.2, 403.2, 518.4, 614.4, 710.4, 825.6, 921.6, 1036.8),
            *(1132.8, 1224, 1326, 1428, 1479),
        )
    ),
    gpu_device="sys/devices/57000000.gpu",
    gpu_links=("sys/devices/gpu.0",),
    gpu_hz=_steps(76_800_000, 921_600_000, 76_800_000),
    emc_layout="t210",
    emc_hz=_XAVIER_EMC[:7],
    idle_states=("WFI", "C7"),
    dialect="jp4",
    hwmon=(),
    zones=_zones(
        "PLL-therm=gpu CPU-therm=cpu PMIC-Die=pmic GPU-therm=gpu AO-therm=board"
        " thermal-fan-est=board"
    ),
    rails=(
        Rail("6-0040", 0, "POM_5V_IN", dict.fromkeys(_ALL_PARTS, 1.12)),
        Rail("6-0040", 1, "POM_5V_GPU", {"gpu": 1.0}),
        Rail("6-0040", 2, "POM_5V_CPU", {"cpu": 1.0}),
    ),
    total=("POM_5V_IN",),
    watts={"cpu": 3.0, "gpu": 4.0, "mem": 1.2, "soc": 0.6, "io": 0.8},
    ram_mib=3964,
    swap_mib=1982,
    modes=(
        Mode(0, "MAXN", 4, (0, -1), (0, -1)),
        Mode(1, "5W", 2, (0, 918_000), (0, 640_000_000), 1600 * MHZ),
    ),
    default_mode=0,
)

XAVIER_NX = Kind(
    name="nx",
    kind="xavier_nx",
    model="NVIDIA Jetson Xavier NX Developer Kit",
    compatible=("nvidia,p3449-0000+p3668-0000", "nvidia,p3668-0000", "nvidia,tegra194"),
    serial="1421020000002",
    soc="tegra194",
    l4t=(32, "6.1"),
    clusters=((0, 1), (2, 3), (4, 5)),
    cpu_param="CPU_DENVER_{}",
    cpu_khz=_steps(115_200, 1_907_200, 76_800),
    gpu_device="sys/devices/17000000.gv11b",
    gpu_links=_XAVIER_GPU_LINKS,
    gpu_hz=(
        *(round(mhz * MHZ) for mhz in (114.75, 204, 306, 408, 510, 599.25)),
        *_steps(701_250_000, 1_109_250_000, 51_000_000),
    ),
    emc_layout="bpmp",
    emc_hz=_XAVIER_EMC[:8],
    idle_states=("C1", "c6"),
    dialect="jp4",
    hwmon=(),
    zones=_zones(
        "AO-therm=board GPU-therm=gpu PMIC-Die=pmic AUX-therm=board CPU-therm=cpu"
        " thermal-fan-est=board"
    ),
    rails=_NX_RAILS,
    total=("VDD_IN",),
    watts={"cpu": 6.0, "gpu": 8.0, "mem": 1.5, "soc": 1.4, "io": 1.0},
    ram_mib=7772,
    swap_mib=3886,
    modes=tuple(
        Mode(n, name, cores, (1_190_400, khz), (0, round(gpu * MHZ)), emc * MHZ, 1, dla)
        for n, (name, cores, khz, gpu, emc, dla) in enumerate(
            (
                ("MODE_15W_2CORE", 2, 1_907_200, 1109.25, 1600, 1_100_800_000),
                ("MODE_15W_4CORE", 4, 1_420_800, 1109.25, 1600, 1_100_800_000),
                ("MODE_15W_6CORE", 6, 1_420_800, 1109.25, 1600, 1_100_800_000),
                ("MODE_10W_2CORE", 2, 1_497_600, 803.25, 1600, 896_000_000),
                ("MODE_10W_4CORE", 4, 1_190_400, 803.25, 1600, 896_000_000),
                ("MODE_10W_DESKTOP", 4, 1_907_200, 510, 1600, 896_000_000),
                ("MODE_20W_2CORE", 2, 1_907_200, 1109.25, 1866, 1_100_800_000),
                ("MODE_20W_4CORE", 4, 1_420_800, 1109.25, 1866, 1_100_800_000),
                ("MODE_20W_6CORE", 6, 1_420_800, 1109.25, 1866, 1_100_800_000),
            )
        )
    ),
    default_mode=6,
    dla_params=_XAVIER_DLA,
)

AGX_XAVIER = Kind(
    name="agx",
    kind="agx_xavier",
    model="Jetson-AGX",
    compatible=("nvidia,p2972-0000", "nvidia,tegra194"),
    serial="1420519000003",
    soc="tegra194",
    l4t=(32, "5.1"),
    clusters=((0, 1), (2, 3), (4, 5), (6, 7)),
    cpu_param="CPU_DENVER_{}",
    cpu_khz=_steps(115_200, 2_265_600, 76_800),
    gpu_device="sys/devices/17000000.gv11b",
    gpu_links=_XAVIER_GPU_LINKS,
    gpu_hz=tuple(
        round(mhz * MHZ)
        for mhz in (
            *(114.75, 216.75, 318.75, 420.75, 522.75, 624.75, 675.75, 828.75, 905.25),
            *(1032.75, 1198.5, 1236.75, 1338.75, 1377),
        )
    ),
    emc_layout="bpmp",
    emc_hz=_XAVIER_EMC,
    idle_states=("C1", "c6"),
    dialect="jp4",
    hwmon=(),
    zones=_zones(
        "AO-therm=board GPU-therm=gpu Tdiode_tegra=gpu PMIC-Die=pmic AUX-therm=board"
        " CPU-therm=cpu thermal-fan-est=board Tboard_tegra=board"
    ),
    rails=tuple(
        Rail(chip, channel, label, {part: 1.0} if part else {}, volt_mv)
        for chip, channel, label, part, volt_mv in (
            ("1-0040", 0, "GPU", "gpu", 19000),
            ("1-0040", 1, "CPU", "cpu", 19000),
            ("1-0040", 2, "SOC", "soc", 19000),
            ("1-0041", 0, "CV", "", 19000),
            ("1-0041", 1, "VDDRQ", "mem", 19000),
            ("1-0041", 2, "SYS5V", "io", 5000),
        )
    ),
    total=("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"),
    watts={"cpu": 12.0, "gpu": 20.0, "mem": 3.2, "soc": 4.5, "io": 4.5},
    ram_mib=31919,
    swap_mib=15959,
    modes=(
        Mode(0, "MAXN", 8, (1_200_000, -1), (318_750_000, -1), 0, 0, -1),
        *(
            Mode(n, name, cores, (1_200_000, khz), (318_750_000, gpu * MHZ), emc, mask, dla * MHZ)
            for n, name, cores, khz, gpu, emc, mask, dla in (
                (1, "MODE_10W", 2, 1_200_000, 520, 1_065_600_000, 5, 550),
                (2, "MODE_15W", 4, 1_200_000, 670, 1_331_200_000, 0, 750),
                (3, "MODE_30W_ALL", 8, 1_200_000, 900, 1_600_000_000, 0, 1050),
                (4, "MODE_30W_6CORE", 6, 1_450_000, 900, 1_600_000_000, 0, 1050),
                (5, "MODE_30W_4CORE", 4, 1_780_000, 900, 1_600_000_000, 0, 1050),
                (6, "MODE_30W_2CORE", 2, 2_100_000, 900, 1_600_000_000, 0, 1050),
                (7, "MODE_15W_DESKTOP", 4, 2_188_800, 670, 1_331_200_000, 0, 115),
            )
        ),
    ),
    default_mode=2,
    emc_top_is_0=True,
    dla_params=_XAVIER_DLA,
)

ORIN_JP5 = Kind(
    name="orin-jp5",
    kind="orin_agx",
    model="Jetson AGX Orin Developer Kit",
    compatible=("nvidia,p3737-0000+p3701-0000", "nvidia,p3701-0000", "nvidia,tegra234"),
    serial="1421322000004",
    soc="tegra234",
    l4t=(34, "1.1"),
    clusters=((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)),
    cpu_param="CPU_A78_{}",
    cpu_khz=_steps(115_200, 2_201_600, 76_800),
    gpu_device="sys/devices/17000000.ga10b",
    gpu_links=("sys/devices/gpu.0",),
    gpu_hz=_steps(114_750_000, 1_300_500_000, 102_000_000),
    emc_layout="bpmp",
    emc_hz=(204_000_000, 665_600_000, 2_133_000_000, 3_199_000_000),
    idle_states=("WFI", "c7"),
    dialect="jp5",
    hwmon=("pwmfan", "pwm_tach", "soctherm_oc", "1-0040", "1-0041"),
    zones=_zones(
        "CV0-therm=off CPU-therm=cpu Tboard_tegra=board SOC2-therm=cpu Tdiode_tegra=gpu"
        " SOC0-therm=cpu CV1-therm=off GPU-therm=gpu tj-therm=cpu SOC1-therm=cpu CV2-therm=off"
    ),
    rails=_ORIN_RAILS,
    total=("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"),
    watts={"cpu": 16.0, "gpu": 26.0, "mem": 3.0, "soc": 3.0, "io": 4.0},
    ram_mib=62840,
    swap_mib=31420,
    modes=(
        Mode(0, "MAXN", 12, (0, -1), (0, -1), 0, 0, -1),
        Mode(1, "MODE_15W", 4, (0, 1_113_600), (0, 420_750_000), 2133 * MHZ, 248, 614_400_000),
        Mode(2, "MODE_30W", 8, (0, 1_728_000), (0, 624_750_000), 0, 240, 1_369_600_000),
        Mode(3, "MODE_50W", 12, (0, 1_497_600), (0, 828_750_000), 0, 0, 1_369_600_000),
    ),
    default_mode=0,
    emc_top_is_0=True,
    gpcs=2,
    dla_params=_ORIN_DLA,
)

ORIN_JP6 = replace(
    ORIN_JP5,
    name="orin-jp6",
    model="NVIDIA Jetson AGX Orin Developer Kit",
    serial="1421323000005",
    l4t=(36, "4.3"),
    gpu_device="sys/devices/platform/17000000.gpu",
    gpu_links=("sys/devices/platform/gpu.0", "sys/devices/gpu.0"),
    gpu_hz=_steps(306_000_000, 1_300_500_000, 102_000_000),
    dialect="jp6",
    hwmon=("1-0040", "1-0041", "pwmfan", "soctherm_oc", "pwm_tach"),
    zones=_zones_jp6(),
    modes=(
        Mode(0, "MAXN", 12, (729_600, -1), (0, -1), 0, 0, -1),
        Mode(1, "MODE_15W", 4, (729_600, 1_113_600), (0, 408 * MHZ), 2133 * MHZ, 248, 614_400_000),
        Mode(2, "MODE_30W", 8, (729_600, 1_728_000), (0, 612 * MHZ), 0, 240, 1_369_600_000),
        Mode(3, "MODE_50W", 12, (729_600, 1_497_600), (0, 816 * MHZ), 0, 0, 1_369_600_000),
    ),
    default_mode=2,
)

ORIN_NANO = Kind(
    name="orin-nano",
    kind="orin_nano",
    model="NVIDIA Jetson Orin Nano Developer Kit",
    compatible=("nvidia,p3768-0000+p3767-0005", "nvidia,p3767-0005", "nvidia,tegra234"),
    serial="1421223000006",
    soc="tegra234",
    l4t=(36, "3.0"),
    clusters=((0, 1, 2, 3), (4, 5)),
    cpu_param="CPU_A78_{}",
    cpu_khz=_steps(115_200, 1_510_400, 76_800),
    gpu_device="sys/devices/platform/17000000.gpu",
    gpu_links=("sys/devices/platform/gpu.0", "sys/devices/gpu.0"),
    gpu_hz=tuple(round(mhz * MHZ) for mhz in (306, 408, 510, 612, 624.75)),
    emc_layout="bpmp",
    emc_hz=(204_000_000, 665_600_000, 2_133_000_000),
    idle_states=("WFI", "c7"),
    dialect="jp6",
    hwmon=("pwmfan", "1-0040", "pwm_tach", "soctherm_oc"),
    zones=_zones_jp6(),
    rails=tuple(
        Rail("1-0040", rail.channel + 1, rail.label, rail.parts, rail.volt_mv) for rail in _NX_RAILS
    ),
    total=("VDD_IN",),
    watts={"cpu": 4.0, "gpu": 5.0, "mem": 1.5, "soc": 1.5, "io": 1.5},
    ram_mib=7607,
    swap_mib=3804,
    modes=(
        Mode(0, "15W", 6, (729_600, 1_510_400), (0, -1), 0, 240),
        Mode(1, "7W", 4, (729_600, 960_000), (0, 408 * MHZ), 0, 252),
    ),
    default_mode=0,
)

KINDS = {kind.name: kind for kind in (NANO, XAVIER_NX, AGX_XAVIER, ORIN_JP5, ORIN_JP6, ORIN_NANO)}
