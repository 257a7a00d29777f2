"""A folder with the cpufreq files of a machine that is no board, and drivers that write them."""

from pathlib import Path

LISTED = (1200000, 1800000, 2400000, 3000000)
BEFORE = (1200000, 3000000)


def make_cpufreq(root, n_cpus=2, listed=LISTED, lowest=1200000, highest=3000000, first=0):
    """Write the files of CPUs `first`... below `root`, limits open; return the root as text."""
    for cpu in range(first, first + n_cpus):
        folder = _folder(root, cpu)
        folder.mkdir(parents=True)
        numbers = {
            "cpuinfo_min_freq": lowest,
            "cpuinfo_max_freq": highest,
            "scaling_min_freq": lowest,
            "scaling_max_freq": highest,
            "scaling_cur_freq": lowest,
        }
        for name, khz in numbers.items():
            (folder / name).write_text(f"{khz}\n")
        if listed:
            words = " ".join(map(str, sorted(listed, reverse=True)))  # as acpi-cpufreq does
            (folder / "scaling_available_frequencies").write_text(words + " \n")
    return str(root)


def limits(root):
    """Return the lowest and highest clock that each CPU may have, kHz."""
    folders = sorted(Path(root).glob("sys/devices/system/cpu/cpu*/cpufreq"))
    names = ("scaling_min_freq", "scaling_max_freq")
    return [tuple(int((folder / name).read_text()) for name in names) for folder in folders]


def set_limits(root, cpu, low, high):
    """Set both limits of a CPU, as another program does."""
    (_folder(root, cpu) / "scaling_min_freq").write_text(f"{low}\n")
    (_folder(root, cpu) / "scaling_max_freq").write_text(f"{high}\n")


def clamping(cap_khz):
    """Return a driver's way to write that never goes above a clock, as under a thermal limit."""

    def write(path, value):
        Path(path).write_text(f"{min(int(value), cap_khz)}\n")
        return True

    return write


def strict(path, value):
    """Write as kernels before 5.3: what would put the minimum above the maximum is rejected."""
    folder = Path(path).parent
    low, high = (int((folder / f"scaling_{name}_freq").read_text()) for name in ("min", "max"))
    if int(value) > high if path.endswith("min_freq") else int(value) < low:
        return False
    Path(path).write_text(value + "\n")
    return True


def _folder(root, cpu):
    return Path(root, f"sys/devices/system/cpu/cpu{cpu}/cpufreq")
