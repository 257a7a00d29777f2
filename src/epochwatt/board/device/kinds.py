"""List the kinds of Jetson boards: clocks, rails, modes, files (board side: Python 3.6 grammar).

A row per kind of module holds everything that differs between boards. The board code and the root
helper, the telemetry, the configuration, the simulator, the predictors and the fake boards read it.
To add a kind, add a row (docs/how-to/add-a-board.md).

A kind is named as NVIDIA names the product, in lower case: Jetson AGX Orin is `agx_orin`. What
nobody has published is None or empty, and code that needs it reports that it is not known.

Sources: docs/reference/sources.md, and the comment at a number that has another one. The root
helper carries a copy of this module, so it imports only the standard library.
"""

from typing import Dict, Mapping, NamedTuple, Optional, Tuple

MHZ, KHZ = 1000000, 1000  # Hz

Steps = Tuple[int, ...]
Range = Tuple[int, int]  # lowest and highest

JETPACK_5, JETPACK_6 = 34, 36  # first major number of their L4T releases


class Rail(NamedTuple):
    """A supply rail with a power sensor."""

    label: str
    parent: Optional[str]  # the rail that feeds it
    feeds: Mapping[str, float]  # share of each of `POWER_PARTS` that passes through it
    chip: str = ""  # bus and address of its sensor; empty: not known
    channel: int = 0  # of the chip, from 1; 0: not known
    volt_mv: int = 5000  # usual voltage, rounded
    sensor: str = "ina3221"  # driver of its sensor


class StockMode(NamedTuple):
    """A power mode of NVIDIA's nvpmodel.conf; highest clock -1: no limit, `emc_hz` 0: no cap."""

    id: int
    name: str
    cores: int
    cpu_khz: Range
    gpu_hz: Range
    emc_hz: int = 0
    tpc_mask: Optional[int] = None  # parts of the GPU that are gated off
    dla_hz: Optional[int] = None
    fbp_mask: Optional[int] = None
    gpu_mask: Optional[int] = None

    @property
    def masks(self) -> Dict[str, int]:
        """Return the masks that it has: TPC, FBP, GPU."""
        pairs = (("FBP", self.fbp_mask), ("TPC", self.tpc_mask), ("GPU", self.gpu_mask))
        return {name: mask for name, mask in pairs if mask is not None}


EMC_CAPS = ("sys/kernel/nvpmodel_emc_cap/emc_iso_cap", "sys/kernel/nvpmodel_clk_cap/emc")


class Release(NamedTuple):
    """A release of NVIDIA's Linux on a kind of board: what its files and tools look like."""

    l4t: str
    tegrastats: str  # dialect of its lines: jp4, jp5, jp6
    gpu_device: str  # folder of the GPU
    zones: Tuple[str, ...]  # types of thermal_zone0, 1, ...
    modes: Tuple[StockMode, ...]
    default_mode: int
    hwmon: Tuple[str, ...] = ()  # names of hwmon0, 1, ..., sensors by their chip; none on JetPack 4
    cpu_khz: Steps = ()  # where they differ from the kind's, as all of these
    gpu_hz: Steps = ()
    emc_hz: Steps = ()
    compatible: Tuple[str, ...] = ()
    model: str = ""
    clock_per_core: bool = False  # nvpmodel names a clock of each core, not of each cluster
    dla: Mapping[str, Tuple[str, ...]] = {}

    @property
    def l4t_major(self) -> int:
        """Return the first number of the release of NVIDIA's Linux."""
        return int(self.l4t.partition(".")[0])

    @property
    def emc_cap(self) -> str:
        """Return the file of nvpmodel's limit of the memory's clock."""
        return EMC_CAPS[self.l4t_major >= JETPACK_6]


class Kind(NamedTuple):
    """One kind of board."""

    name: str
    title: str
    pattern: str  # of its part numbers in `compatible`, or words in `model`, of the device tree
    compatible: Tuple[str, ...]
    model: str
    soc: str
    cores: int
    cluster_cores: int  # that share a clock
    cpu_khz: Steps
    gpu_hz: Steps
    emc_hz: Steps  # no file of a board lists them
    gpu_name: str  # pattern of the end of its GPU's folder in devfreq
    emc_files: Mapping[str, str]  # of its memory's clock: min, max, now, wanted, locked
    rails: Tuple[Rail, ...]
    total_rule: str  # how the total power is made of the rails; empty: not known
    not_seen: str  # what that total does not contain
    rails_source: str
    scope: str = "module"  # whose power that total is: the module's, or the whole `board`'s
    ram_mib: Optional[int] = None  # as the kernel counts it
    seen_only: Tuple[str, ...] = ()  # clocks (cpu, gpu, emc) whose steps are not all known
    emc_top_is_0: bool = False  # nvpmodel takes the highest memory clock only as 0, no cap
    cpu_param: str = "CPU_{}"  # nvpmodel's name of a cluster's clocks
    # nvpmodel's names of the accelerators' clocks -> file; of two, JetPack 6 has the second
    dla: Mapping[str, Tuple[str, ...]] = {}
    tpcs: Optional[int] = None  # parts of the GPU that `tpc_mask` counts
    gpcs: int = 1  # GPU clocks in a line of tegrastats
    has_gpu_load: bool = True  # its GPU has a file of its load; False: NVML tells it
    idle_states: Tuple[str, ...] = ()
    not_connected: Tuple[Tuple[str, int], ...] = ()  # chip and channel of sensors without a rail
    releases: Tuple[Release, ...] = ()  # oldest first; none: only what is above is known

    @property
    def clusters(self) -> Tuple[Tuple[int, ...], ...]:
        """Return the numbers of the cores that share a clock."""
        size = self.cluster_cores
        return tuple(
            tuple(range(first, min(first + size, self.cores)))
            for first in range(0, self.cores, size)
        )


# Parts of a board that take power. `io` is what neither CPU, GPU, memory nor SoC takes.
POWER_PARTS = ("soc", "io", "cpu", "gpu", "memory")
_WHOLE_MODULE = dict.fromkeys(POWER_PARTS, 1)


def _steps(first: int, last: int, step: int) -> Steps:
    """Return first, first + step, ... below last, and last."""
    return tuple(range(first, last, step)) + (last,)


def _words(text: str) -> Tuple[str, ...]:
    return tuple(text.split())


def _scaled(unit: int, *numbers: float) -> Steps:
    return tuple(round(unit * number) for number in numbers)


_BPMP = "sys/kernel/debug/bpmp/debug/clk/emc/"
_EMC_BPMP = {
    "min": _BPMP + "min_rate",
    "max": _BPMP + "max_rate",
    "now": _BPMP + "rate",
    "wanted": _BPMP + "rate",
    "locked": _BPMP + "mrq_rate_locked",
}
_XAVIER_EMC = _scaled(MHZ, 204, 408, 665.6, 800, 1065.6, 1331.2, 1600, 1866, 2133)
_XAVIER_DLA = {"DLA_CORE": ("sys/kernel/nvpmodel_emc_cap/nafll_dla",)}
_XAVIER_JP5_DLA = {
    "NAFLL_DLA": ("sys/devices/platform/13e10000.host1x/15880000.nvdla0/acm/clk_cap/nafll_dla",)
}
_JP6_GPU = "sys/devices/platform/17000000.gpu"
_JP6_ZONES = _words(
    "cpu-thermal gpu-thermal cv0-thermal cv1-thermal cv2-thermal soc0-thermal soc1-thermal"
    " soc2-thermal tj-thermal"
)


def _orin_dla(device: str, clock: str) -> Tuple[str, str]:
    """Return the file of a DLA's clock of JetPack 5, and that of JetPack 6."""
    return (
        "sys/devices/platform/13e40000.host1x/{}/acm/clk_cap/{}".format(device, clock),
        "sys/devices/platform/bus@0/13e00000.host1x/{}/clk_cap/{}".format(device, clock),
    )


_GUIDE = "energymon@a95cefb jetson/JetsonPowerRails.md (NVIDIA developer guide and device trees)"
_CARRIER = "the carrier board and all that is plugged into it (USB, disks, fan, display)"
_INPUT_RULE = "the input rail {} feeds the whole module; the others hang below it"


def _nx_rails(chip: str) -> Tuple[Rail, ...]:
    return (
        Rail("VDD_IN", None, _WHOLE_MODULE, chip, 1),
        Rail("VDD_CPU_GPU_CV", "VDD_IN", {"cpu": 1, "gpu": 1}, chip, 2),
        Rail("VDD_SOC", "VDD_IN", {"soc": 1}, chip, 3),
    )


NANO = Kind(
    name="nano",
    title="Jetson Nano",
    pattern=r"p3448|p3450|jetson.nano",
    compatible=("nvidia,p3450-0000", "nvidia,jetson-nano", "nvidia,tegra210"),
    model="NVIDIA Jetson Nano Developer Kit",
    soc="tegra210",
    cores=4,
    cluster_cores=4,
    cpu_khz=_scaled(
        KHZ, 102, 204, 307.2, 403.2, 518.4, 614.4, 710.4, 825.6, 921.6, 1036.8, 1132.8, 1224, 1326
    )
    + _scaled(KHZ, 1428, 1479),
    gpu_hz=_steps(76800000, 921600000, 76800000),
    emc_hz=_XAVIER_EMC[:7],
    gpu_name=r"\.gpu",
    emc_files={
        "min": "sys/kernel/debug/tegra_bwmgr/emc_min_rate",
        "max": "sys/kernel/debug/tegra_bwmgr/emc_max_rate",
        "now": "sys/kernel/debug/clk/override.emc/clk_rate",
        "wanted": "sys/kernel/debug/clk/override.emc/clk_update_rate",
        "locked": "sys/kernel/debug/clk/override.emc/clk_state",
    },
    rails=(
        Rail("POM_5V_IN", None, _WHOLE_MODULE, "6-0040", 1),
        Rail("POM_5V_GPU", "POM_5V_IN", {"gpu": 1}, "6-0040", 2),
        Rail("POM_5V_CPU", "POM_5V_IN", {"cpu": 1}, "6-0040", 3),
    ),
    total_rule=_INPUT_RULE.format("POM_5V_IN"),
    not_seen=_CARRIER,
    rails_source=_GUIDE,
    ram_mib=3964,
    cpu_param="CPU_A57",
    idle_states=("WFI", "C7"),
    releases=(
        Release(
            l4t="32.6.1",
            tegrastats="jp4",
            gpu_device="sys/devices/57000000.gpu",
            zones=_words("PLL-therm CPU-therm PMIC-Die GPU-therm AO-therm thermal-fan-est"),
            modes=(
                StockMode(0, "MAXN", 4, (0, -1), (0, -1)),
                StockMode(1, "5W", 2, (0, 918000), (0, 640000000), 1600 * MHZ),
            ),
            default_mode=0,
        ),
    ),
)

XAVIER_NX = Kind(
    name="xavier_nx",
    title="Jetson Xavier NX",
    pattern=r"p3668|xavier nx",
    compatible=("nvidia,p3449-0000+p3668-0000", "nvidia,p3668-0000", "nvidia,tegra194"),
    model="NVIDIA Jetson Xavier NX Developer Kit",
    soc="tegra194",
    cores=6,
    cluster_cores=2,
    cpu_khz=_steps(115200, 1907200, 76800),
    gpu_hz=_scaled(MHZ, 114.75, 204, 306, 408, 510, 599.25)
    + _steps(701250000, 1109250000, 51000000),
    emc_hz=_XAVIER_EMC[:8],
    gpu_name=r"\.gv11b",
    emc_files=_EMC_BPMP,
    rails=_nx_rails("7-0040"),
    total_rule=_INPUT_RULE.format("VDD_IN"),
    not_seen=_CARRIER,
    rails_source=_GUIDE + "; NVIDIA forum topic 200883",
    ram_mib=7772,
    cpu_param="CPU_DENVER_{}",
    dla=_XAVIER_DLA,
    tpcs=4,  # ASSUME: the die of AGX Xavier (mask 1: 3 on)
    idle_states=("C1", "c6"),
    releases=(
        Release(
            l4t="32.6.1",
            tegrastats="jp4",
            gpu_device="sys/devices/17000000.gv11b",
            zones=_words("AO-therm GPU-therm PMIC-Die AUX-therm CPU-therm thermal-fan-est"),
            modes=tuple(
                StockMode(n, name, cores, (1190400, khz), (0, round(gpu * MHZ)), emc * MHZ, 1, dla)
                for n, (name, cores, khz, gpu, emc, dla) in enumerate(
                    (
                        ("MODE_15W_2CORE", 2, 1907200, 1109.25, 1600, 1100800000),
                        ("MODE_15W_4CORE", 4, 1420800, 1109.25, 1600, 1100800000),
                        ("MODE_15W_6CORE", 6, 1420800, 1109.25, 1600, 1100800000),
                        ("MODE_10W_2CORE", 2, 1497600, 803.25, 1600, 896000000),
                        ("MODE_10W_4CORE", 4, 1190400, 803.25, 1600, 896000000),
                        ("MODE_10W_DESKTOP", 4, 1907200, 510, 1600, 896000000),
                        ("MODE_20W_2CORE", 2, 1907200, 1109.25, 1866, 1100800000),
                        ("MODE_20W_4CORE", 4, 1420800, 1109.25, 1866, 1100800000),
                        ("MODE_20W_6CORE", 6, 1420800, 1109.25, 1866, 1100800000),
                    )
                )
            ),
            default_mode=6,
        ),
    ),
)

_AGX_XAVIER_MODES = (StockMode(0, "MAXN", 8, (1200000, -1), (318750000, -1), 0, 0, -1),) + tuple(
    StockMode(n, name, cores, (1200000, khz), (318750000, gpu * MHZ), emc, mask, dla * MHZ)
    for n, name, cores, khz, gpu, emc, mask, dla in (
        (1, "MODE_10W", 2, 1200000, 520, 1065600000, 5, 550),
        (2, "MODE_15W", 4, 1200000, 670, 1331200000, 0, 750),
        (3, "MODE_30W_ALL", 8, 1200000, 900, 1600000000, 0, 1050),
        (4, "MODE_30W_6CORE", 6, 1450000, 900, 1600000000, 0, 1050),
        (5, "MODE_30W_4CORE", 4, 1780000, 900, 1600000000, 0, 1050),
        (6, "MODE_30W_2CORE", 2, 2100000, 900, 1600000000, 0, 1050),
        (7, "MODE_15W_DESKTOP", 4, 2188800, 670, 1331200000, 0, 115),
    )
)

AGX_XAVIER = Kind(
    name="agx_xavier",
    title="Jetson AGX Xavier",
    pattern=r"p2888|p2972|agx xavier|jetson-agx",
    compatible=("nvidia,p2972-0000", "nvidia,tegra194"),
    model="Jetson-AGX",
    soc="tegra194",
    cores=8,
    cluster_cores=2,
    cpu_khz=_steps(115200, 2265600, 76800),
    gpu_hz=_scaled(
        MHZ, 114.75, 216.75, 318.75, 420.75, 522.75, 624.75, 675.75, 828.75, 905.25, 1032.75
    )
    + _scaled(MHZ, 1198.5, 1236.75, 1338.75, 1377),
    emc_hz=_XAVIER_EMC,
    gpu_name=r"\.gv11b",
    emc_files=_EMC_BPMP,
    rails=(
        Rail("GPU", None, {"gpu": 1}, "1-0040", 1, 19000),
        Rail("CPU", None, {"cpu": 1}, "1-0040", 2, 19000),
        Rail("SOC", None, {"soc": 1}, "1-0040", 3, 19000),
        Rail("CV", None, {}, "1-0041", 1, 19000),
        Rail("VDDRQ", None, {"memory": 1}, "1-0041", 2, 19000),
        Rail("SYS5V", None, {"io": 1}, "1-0041", 3, 5000),
    ),
    total_rule="the six rails hang side by side below the module's two inputs, which have no "
    "sensor: their sum",
    not_seen=_CARRIER + ", and what the module's inputs feed beside the six rails",
    rails_source=_GUIDE + "; AGX Xavier design guide, 5.2 and 5.6.2",
    ram_mib=31919,
    emc_top_is_0=True,
    cpu_param="CPU_DENVER_{}",
    dla=_XAVIER_DLA,
    tpcs=4,  # SOURCE: two of Volta's SMs make one, NVIDIA's data sheet: 8 (mask 5 leaves half on)
    idle_states=("C1", "c6"),
    releases=(
        Release(
            l4t="32.5.1",
            tegrastats="jp4",
            gpu_device="sys/devices/17000000.gv11b",
            zones=_words(
                "AO-therm GPU-therm Tdiode_tegra PMIC-Die AUX-therm CPU-therm thermal-fan-est"
                " Tboard_tegra"
            ),
            modes=_AGX_XAVIER_MODES,
            default_mode=2,
        ),
        # SOURCE, numbers of the stored index: modes and their numbers 53762007532; 15W_DESKTOP
        # where none was chosen, its clocks, the fan as hwmon3 and names of the zones 71453058996
        # (R35.6.5), 59435640012 (R35.6.4), 68875925961. Zones 0 and 2: jetson_stats issue 291. GPU,
        # EMC and DLA as in nvpmodel.conf of its sister Xavier NX (dev10110/gatekeeper-exp-xavier).
        # ASSUME: limits of the modes as before; order of the other zones and hwmon devices
        Release(
            l4t="35.6.0",
            tegrastats="jp5",
            gpu_device="sys/devices/17000000.gv11b",
            zones=_words(
                "CPU-therm GPU-therm AUX-therm AO-therm PMIC-Die Tboard_tegra Tdiode_tegra"
                " thermal-fan-est"
            ),
            hwmon=("1-0040", "1-0041", "soctherm_oc", "pwmfan", "pwm_tach"),
            modes=_AGX_XAVIER_MODES,
            default_mode=7,
            dla=_XAVIER_JP5_DLA,
        ),
    ),
)

AGX_ORIN = Kind(
    name="agx_orin",
    title="Jetson AGX Orin",
    pattern=r"p3701|agx orin",
    compatible=("nvidia,p3737-0000+p3701-0000", "nvidia,p3701-0000", "nvidia,tegra234"),
    model="NVIDIA Jetson AGX Orin Developer Kit",
    soc="tegra234",
    cores=12,
    cluster_cores=4,
    cpu_khz=_steps(115200, 2201600, 76800),
    gpu_hz=_steps(114750000, 1300500000, 102000000),
    emc_hz=_scaled(MHZ, 204, 665.6, 2133, 3199),
    gpu_name=r"\.(ga10b|gpu)",
    emc_files=_EMC_BPMP,
    rails=(
        Rail("VDD_GPU_SOC", None, {"gpu": 1, "soc": 1}, "1-0040", 1, 19800),
        Rail("VDD_CPU_CV", None, {"cpu": 1}, "1-0040", 2, 19800),
        Rail("VIN_SYS_5V0", None, {"io": 1, "memory": 1}, "1-0040", 3, 5040),
        Rail("VDDQ_VDD2_1V8AO", "VIN_SYS_5V0", {"memory": 0.5}, "1-0041", 2, 5040),
    ),
    total_rule="VDD_GPU_SOC + VDD_CPU_CV + VIN_SYS_5V0; VDDQ_VDD2_1V8AO hangs below VIN_SYS_5V0 "
    "and is not added again",
    not_seen=_CARRIER + ", and what the module's inputs feed beside the three rails",
    rails_source=_GUIDE + "; NVIDIA forum topic 223111",
    ram_mib=62840,
    emc_top_is_0=True,
    cpu_param="CPU_A78_{}",
    dla={
        "DLA0_CORE": _orin_dla("15880000.nvdla0", "dla0_core"),
        "DLA1_CORE": _orin_dla("158c0000.nvdla1", "dla1_core"),
    },
    tpcs=8,  # SOURCE: two of Ampere's SMs make one; 16 on the 64 GB module (240: 4 on, 248: 3 on)
    gpcs=2,
    idle_states=("WFI", "c7"),
    not_connected=(("1-0041", 1), ("1-0041", 3)),
    releases=(
        Release(
            l4t="34.1.1",
            tegrastats="jp5",
            gpu_device="sys/devices/17000000.ga10b",
            zones=_words(
                "CV0-therm CPU-therm Tboard_tegra SOC2-therm Tdiode_tegra SOC0-therm CV1-therm"
                " GPU-therm tj-therm SOC1-therm CV2-therm"
            ),
            hwmon=("pwmfan", "pwm_tach", "soctherm_oc", "1-0040", "1-0041"),
            modes=(
                StockMode(0, "MAXN", 12, (0, -1), (0, -1), 0, 0, -1),
                StockMode(
                    1, "MODE_15W", 4, (0, 1113600), (0, 420750000), 2133 * MHZ, 248, 614400000
                ),
                StockMode(2, "MODE_30W", 8, (0, 1728000), (0, 624750000), 0, 240, 1369600000),
                StockMode(3, "MODE_50W", 12, (0, 1497600), (0, 828750000), 0, 0, 1369600000),
            ),
            default_mode=0,
        ),
        Release(
            l4t="36.4.3",
            tegrastats="jp6",
            gpu_device=_JP6_GPU,
            gpu_hz=_steps(306000000, 1300500000, 102000000),
            zones=_JP6_ZONES,
            hwmon=("1-0040", "1-0041", "pwmfan", "soctherm_oc", "pwm_tach"),
            modes=(
                StockMode(0, "MAXN", 12, (729600, -1), (0, -1), 0, 0, -1),
                StockMode(
                    1, "MODE_15W", 4, (729600, 1113600), (0, 408 * MHZ), 2133 * MHZ, 248, 614400000
                ),
                StockMode(2, "MODE_30W", 8, (729600, 1728000), (0, 612 * MHZ), 0, 240, 1369600000),
                StockMode(3, "MODE_50W", 12, (729600, 1497600), (0, 816 * MHZ), 0, 0, 1369600000),
            ),
            default_mode=2,
        ),
    ),
)

ORIN_NX = Kind(
    name="orin_nx",
    title="Jetson Orin NX",
    pattern=r"p3767-000[01]|orin nx",
    compatible=("nvidia,p3768-0000+p3767-0000", "nvidia,p3767-0000", "nvidia,tegra234"),
    model="NVIDIA Jetson Orin NX Engineering Reference Developer Kit",
    soc="tegra234",
    cores=8,
    cluster_cores=4,
    cpu_khz=(),
    gpu_hz=(),
    emc_hz=(),
    seen_only=("cpu", "gpu", "emc"),
    gpu_name=r"\.(ga10b|gpu)",
    emc_files=_EMC_BPMP,
    rails=_nx_rails("1-0040"),
    total_rule=_INPUT_RULE.format("VDD_IN"),
    not_seen=_CARRIER,
    rails_source="recorded tegrastats lines",
)

# SOURCE, numbers of the stored index: modes 61511691988 (a copy in somebody's test) and 54837080849
# (25W, L4T 36.4.3); ends of the clocks there and in 68579880183 (ASSUME: steps between as on the
# other boards of the family); device tree 52536279210, with the part of the developer kit.
_ORIN_NANO_SUPER_MODES = tuple(
    StockMode(n, name, cores, (729600, khz), (0, gpu), emc, tpc_mask=240, fbp_mask=2)
    for n, (name, cores, khz, gpu, emc) in enumerate(
        (
            ("15W", 6, 1497600, 612 * MHZ, 2133 * MHZ),
            ("25W", 6, 1344000, 918 * MHZ, 3199 * MHZ),
            ("MAXN_SUPER", 6, -1, -1, -1),
            ("7W", 4, 960000, 408 * MHZ, 2133 * MHZ),
        )
    )
)


def _orin_nano_super(l4t: str, modes: Tuple[StockMode, ...]) -> Release:
    return Release(
        l4t=l4t,
        tegrastats="jp6",
        gpu_device="sys/devices/platform/bus@0/17000000.gpu",
        zones=_JP6_ZONES,
        hwmon=("pwmfan", "1-0040", "pwm_tach", "soctherm_oc"),
        cpu_khz=_steps(115200, 1728000, 76800),
        gpu_hz=_steps(306000000, 1020000000, 102000000),
        emc_hz=_scaled(MHZ, 204, 665.6, 2133, 3199),
        modes=modes,
        default_mode=1,
        compatible=("nvidia,p3768-0000+p3767-0005-super", "nvidia,p3767-0005", "nvidia,tegra234"),
        model="NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super",
        clock_per_core=True,
    )


# ASSUME: its modes and idle states before the super configuration are from memory
ORIN_NANO = Kind(
    name="orin_nano",
    title="Jetson Orin Nano",
    pattern=r"p3767-000[345]|orin nano",
    compatible=("nvidia,p3768-0000+p3767-0005", "nvidia,p3767-0005", "nvidia,tegra234"),
    model="NVIDIA Jetson Orin Nano Developer Kit",
    soc="tegra234",
    cores=6,
    cluster_cores=4,
    cpu_khz=_steps(115200, 1510400, 76800),
    gpu_hz=_scaled(MHZ, 306, 408, 510, 612, 624.75),
    emc_hz=_scaled(MHZ, 204, 665.6, 2133),
    seen_only=("emc",),
    gpu_name=r"\.(ga10b|gpu)",
    emc_files=_EMC_BPMP,
    rails=_nx_rails("1-0040"),
    total_rule=_INPUT_RULE.format("VDD_IN"),
    not_seen=_CARRIER,
    rails_source="recorded tegrastats lines",
    ram_mib=7607,
    cpu_param="CPU_A78_{}",
    idle_states=("WFI", "c7"),
    releases=(
        Release(
            l4t="36.3.0",
            tegrastats="jp6",
            gpu_device=_JP6_GPU,
            zones=_JP6_ZONES,
            hwmon=("pwmfan", "1-0040", "pwm_tach", "soctherm_oc"),
            modes=(
                StockMode(0, "15W", 6, (729600, 1510400), (0, -1), 0, 240),
                StockMode(1, "7W", 4, (729600, 960000), (0, 408 * MHZ), 0, 252),
            ),
            default_mode=0,
        ),
        _orin_nano_super("36.4.3", _ORIN_NANO_SUPER_MODES),
        # SOURCE: ids and names of the modes, 25W, model: 68579880183. ASSUME: the rest
        _orin_nano_super("39.2.1", _ORIN_NANO_SUPER_MODES[:3]),
    ),
)

# SOURCE (numbers of the stored index; docs/reference/sources.md):
# * compatible, model: Linux, tegra264-p4071-0000+p3834-0008.dts; jetson_stats issue 711.
# * Cores, modes, highest clocks: Jetson Linux Developer Guide r38.4, "Jetson Thor Product Family"
#   (as others quote it; one says 14 cores in 90W), and dkreinov/blackwell-autoresearch@1d895cb5bbe3
#   (read on a board, with the masks). JetPack 7.0 had the first two (anduril/jetpack-nixos, pull
#   request 460). Masks of JetPack 7.2, the name GPU_POWER_GATING: 55148448721.
# * GPU: clocks from 54 MHz (69212024139) to 1575, 170 of them (cooling device of 169 states,
#   69805507542), all seen ones multiples of 9: 9 MHz apart. Beside it gpu-nvd-0, the video engines'
#   (183, to 1692). Their folders: 60251381184.
# * CPU: 49 clocks (69805507542) to 2601 MHz; Linux' tegra194-cpufreq.c makes steps of at least
#   50 MHz out of multiples, which are 9 MHz (forum topic 361188): 54 MHz apart, and the top. All of
#   the five seen fit. Two cores share one: cooling devices cpufreq-cpu0 to 12; NVIDIA's Sionna
#   documentation sets CPUs 0, 2, ..., 12.
# * Memory: cap and `bwmgr` were read on boards (60251381184, 69548857794, 69545150365); 4266 MHz in
#   every mode (59359159959); 665.6, 2750 and 3200 were seen. Idle states: 44448955983.
# * INA3221: labels, channels and voltages 69805507542. VIN, an INA238 of the carrier board: NVIDIA
#   forum topic 366461, jetson_stats pull request 900, 69545150365. RAM: tegrastats.
# Not known: addresses of the sensors, other steps of the memory, names in nvpmodel.conf but the
# mask's (of CPU clusters they are not Orin's: NVIDIA/skills@7149a886d50d), which bit of the mask is
# which GPC, TPC or FBP, and which rails add up to the module alone.
_BWMGR = "sys/class/devfreq/bwmgr/"


def _thor(l4t: str, mask: int, gated: int) -> Release:
    """Return a release; its modes have either of two masks."""
    modes = (
        StockMode(0, "MAXN", 14, (0, 2601000), (0, 1575 * MHZ), 4266 * MHZ, gpu_mask=mask),
        StockMode(1, "120W", 14, (0, 2601000), (0, 1386 * MHZ), 4266 * MHZ, gpu_mask=mask),
        StockMode(2, "90W", 12, (0, 2601000), (0, 1530 * MHZ), 4266 * MHZ, gpu_mask=gated),
        StockMode(3, "70W", 12, (0, 1998000), (0, 1530 * MHZ), 4266 * MHZ, gpu_mask=gated),
    )
    return Release(
        l4t=l4t,
        tegrastats="jp6",  # the nearest of the dialects that a fake board prints
        gpu_device="sys/devices/platform/gpu-gpc-0",  # ASSUME: where below sys/devices
        # ASSUME: their order, but for the second (69805507542)
        zones=_words("cpu-thermal gpu-thermal soc012-thermal soc345-thermal tj-thermal"),
        modes=modes,
        default_mode=1,
    )


AGX_THOR = Kind(
    name="agx_thor",
    title="Jetson AGX Thor",
    pattern=r"p3834-0008|agx thor",
    compatible=("nvidia,p4071-0000+p3834-0008", "nvidia,p3834-0008", "nvidia,tegra264"),
    model="NVIDIA Jetson AGX Thor Developer Kit",
    soc="tegra264",
    cores=14,
    cluster_cores=2,
    cpu_khz=_steps(54000, 2601000, 54000),
    gpu_hz=_steps(54 * MHZ, 1575 * MHZ, 9 * MHZ),
    emc_hz=_scaled(MHZ, 665.6, 2750, 3200, 4266),
    seen_only=("emc",),
    gpu_name="/gpu-gpc-0",
    emc_files={
        "min": _BWMGR + "min_freq",
        "max": _BWMGR + "max_freq",
        "now": _BWMGR + "cur_freq",
        "wanted": _BWMGR + "min_freq",  # ASSUME
    },
    rails=(  # ASSUME: what the rails feed is read from their names
        Rail("VIN", None, _WHOLE_MODULE, channel=1, volt_mv=12000, sensor="ina238"),
        Rail("VDD_GPU", "VIN", {"gpu": 1}, channel=1, volt_mv=12000),
        Rail("VDD_CPU_SOC_MSS", "VIN", {"cpu": 1, "soc": 1}, channel=2, volt_mv=12000),
        Rail("VIN_SYS_5V0", "VIN", {"memory": 1, "io": 1}, channel=3),
    ),
    total_rule="the board's input VIN feeds module and carrier board; the others hang below it",
    not_seen="the power supply's own losses; all else is in it, also what no other board's total "
    "has: the carrier board and all that is plugged into it (USB, disks, fan, display)",
    rails_source="NVIDIA forum topic 366461 (VIN: module and carrier); recorded tegrastats lines: "
    "it is 6 to 13 W above the sum of the others",
    scope="board",
    ram_mib=125772,
    idle_states=("WFI", "cc7"),
    gpcs=3,
    has_gpu_load=False,
    releases=(_thor("38.4.0", 64, 15873), _thor("39.2.0", 512, 17353)),
)

# A module is of the first kind whose pattern is found.
KINDS: Dict[str, Kind] = {
    kind.name: kind
    for kind in (NANO, XAVIER_NX, AGX_ORIN, AGX_XAVIER, ORIN_NX, ORIN_NANO, AGX_THOR)
}

# Files of the memory's clock now, Hz; the second is that of older kernels.
EMC_CLOCK_FILES = tuple(
    dict.fromkeys(
        [AGX_ORIN.emc_files["now"], "sys/kernel/debug/clk/emc/clk_rate"]
        + [kind.emc_files["now"] for kind in KINDS.values() if "now" in kind.emc_files]
    )
)
