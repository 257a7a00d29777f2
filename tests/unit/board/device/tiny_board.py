"""The smallest board that the root helper can work on: a few files, and tools in shell."""

import json
import subprocess
import sys
from pathlib import Path

from epochwatt.board.device.helper_file import helper_file

GPU = "sys/devices/17000000.gv11b/devfreq/17000000.gv11b"
MASK = "sys/devices/gpu.0/tpc_pg_mask"

CONF = """\
# four cores in two clusters
< PARAM TYPE=FILE NAME=CPU_ONLINE >
CORE_0 /sys/devices/system/cpu/cpu0/online
CORE_1 /sys/devices/system/cpu/cpu1/online
CORE_2 /sys/devices/system/cpu/cpu2/online
CORE_3 /sys/devices/system/cpu/cpu3/online

< PARAM TYPE=FILE NAME=TPC_POWER_GATING >
TPC_PG_MASK /sys/devices/gpu.0/tpc_pg_mask

< PARAM TYPE=CLOCK NAME=CPU_DENVER_0 >
MAX_FREQ /sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq
MIN_FREQ /sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq

< PARAM TYPE=CLOCK NAME=CPU_DENVER_1 >
MAX_FREQ /sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq
MIN_FREQ /sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq

< PARAM TYPE=CLOCK NAME=GPU >
MAX_FREQ /sys/devices/17000000.gv11b/devfreq/17000000.gv11b/max_freq
MIN_FREQ /sys/devices/17000000.gv11b/devfreq/17000000.gv11b/min_freq

< PARAM TYPE=CLOCK NAME=EMC >
MAX_FREQ /sys/kernel/nvpmodel_emc_cap/emc_iso_cap

< POWER_MODEL ID=0 NAME=SMALL >
CPU_ONLINE CORE_0 1
CPU_ONLINE CORE_1 1
CPU_ONLINE CORE_2 0
CPU_ONLINE CORE_3 0
TPC_POWER_GATING TPC_PG_MASK 0
CPU_DENVER_0 MIN_FREQ 1200000
CPU_DENVER_0 MAX_FREQ 1200000
GPU MIN_FREQ 318750000
GPU MAX_FREQ 670000000
EMC MAX_FREQ 1331200000

< POWER_MODEL ID=3 NAME=MAXN >
CPU_ONLINE CORE_0 1
CPU_ONLINE CORE_1 1
CPU_ONLINE CORE_2 1
CPU_ONLINE CORE_3 1
TPC_POWER_GATING TPC_PG_MASK 0
CPU_DENVER_0 MIN_FREQ 1200000
CPU_DENVER_0 MAX_FREQ -1
CPU_DENVER_1 MIN_FREQ 1200000
CPU_DENVER_1 MAX_FREQ -1
GPU MIN_FREQ 318750000
GPU MAX_FREQ -1
EMC MAX_FREQ 0

< POWER_MODEL ID=7 NAME=GATED >
CPU_ONLINE CORE_0 1
CPU_ONLINE CORE_1 1
CPU_ONLINE CORE_2 1
CPU_ONLINE CORE_3 1
TPC_POWER_GATING TPC_PG_MASK 5
EMC MAX_FREQ 0

< PM_CONFIG DEFAULT=0 >
< FAN_CONFIG DEFAULT=cool >
"""

# writes down its calls and what it finds set when it is called; exits with 255, as the real one may
NVPMODEL = """\
#!/bin/sh
# epochwatt stand-in
root=$(cd "$(dirname "$0")/../.." && pwd)
cpu=$root/sys/devices/system/cpu/cpu3
if [ "$1" = -q ]; then
    echo "NV Fan Mode:quiet"
    echo "NV Power Mode: $(cat "$root/mode.name")"
    cat "$root/mode"
    exit 0
fi
mkdir "$root/busy" || echo "two at once" >> "$root/calls"
echo "nvpmodel $*" >> "$root/calls"
env > "$root/environment"
echo $(cat $cpu/online $cpu/cpufreq/scaling_min_freq $cpu/cpufreq/scaling_max_freq) > "$root/found"
cp "$2" "$root/conf.used"
rmdir "$root/busy"
if [ -e "$root/kills" ]; then kill -9 $PPID; fi
if [ -e "$root/asks" ]; then
    echo "NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:"
    read -r answer
    echo "answer: $answer" >> "$root/calls"
    exit 1
fi
echo "$4" > "$root/mode"
sed -n "s/^< POWER_MODEL ID=$4 NAME=\\(.*\\) >/\\1/p" "$2" > "$root/mode.name"
exit 255
"""
JETSON_CLOCKS = """\
#!/bin/sh
# epochwatt stand-in
root=$(cd "$(dirname "$0")/../.." && pwd)
echo "jetson_clocks $*" >> "$root/calls"
if [ "$1" = --store ]; then
    if [ -e "$2" ]; then echo "already exists. Can I overwrite it? Y/N:"; exit 1; fi
    if [ -e "$root/to.store" ]; then cat "$root/to.store" > "$2"; else echo stored > "$2"; fi
fi
if [ "$1" = --restore ] && [ ! -e "$root/stuck" ]; then
    while IFS=: read -r path value; do
        if [ -e "$root$path" ]; then echo "$value" > "$root$path"; fi
    done < "$2"
fi
"""
SYSTEMCTL = """\
#!/bin/sh
root=$(cd "$(dirname "$0")/.." && pwd)
echo "systemctl $*" >> "$root/calls"
if [ "$1" = is-active ]; then echo active; fi
"""


class TinyBoard:
    """A board below a folder, with its helper."""

    def __init__(self, root: Path, python: str = sys.executable):
        self.root = root
        for name, content in self._files().items():
            self.write(name, content)
        for name, content in {
            "usr/sbin/nvpmodel": NVPMODEL,
            "usr/bin/jetson_clocks": JETSON_CLOCKS,
            "bin/systemctl": SYSTEMCTL,
        }.items():
            self.write(name, content)
            (root / name).chmod(0o755)
        (root / "var/lib").mkdir(parents=True)
        self.helper = root / "usr/local/sbin/epochwatt-helper"
        self.helper.parent.mkdir(parents=True)
        self.helper.write_bytes(helper_file(python))
        self.helper.chmod(0o755)

    @staticmethod
    def _files():
        files = {
            "proc/device-tree/model": "NVIDIA Jetson AGX Xavier\0",
            "proc/device-tree/compatible": "nvidia,p2972-0000\0nvidia,tegra194\0",
            "proc/sys/kernel/random/boot_id": "first\n",
            "proc/sys/vm/drop_caches": "0\n",
            "sys/kernel/nvpmodel_emc_cap/emc_iso_cap": "0\n",
            "sys/kernel/debug/bpmp/debug/clk/emc/rate": "2133000000\n",
            "sys/devices/pwm-fan/target_pwm": "77\n",
            "sys/devices/pwm-fan/temp_control": "1\n",
            "etc/nvpmodel.conf": CONF,
            MASK: "0\n",
            GPU + "/available_frequencies": "114750000 675750000 1377000000\n",
            GPU + "/min_freq": "114750000\n",
            GPU + "/max_freq": "675750000\n",
            GPU + "/cur_freq": "318750000\n",
            "mode": "0\n",
            "mode.name": "SMALL\n",
            "calls": "",
        }
        for cpu in range(4):
            folder = f"sys/devices/system/cpu/cpu{cpu}/"
            files[folder + "online"] = f"{int(cpu < 2)}\n"
            files[folder + "cpufreq/scaling_available_frequencies"] = "115200 1190400 2265600 \n"
            files[folder + "cpufreq/scaling_min_freq"] = "1190400\n"
            files[folder + "cpufreq/scaling_max_freq"] = "1190400\n"
            files[folder + "cpufreq/scaling_cur_freq"] = "1190400\n"
        return files

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def read(self, name):
        return (self.root / name).read_text().strip()

    def start(self, *words, **options):
        """Start the helper; return the process."""
        return subprocess.Popen(
            [self.helper, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )

    def ask(self, *words, **options):
        """Return exit status and answer of the helper, which is one line and no complaint."""
        process = self.start(*words, **options)
        said, complaint = process.communicate()
        assert complaint == b""
        assert said.count(b"\n") == 1
        answer = json.loads(said)
        assert answer["ok"] is (process.returncode == 0)
        return process.returncode, answer

    def calls(self):
        """Return what the tools were called with so far, paths below the root made short."""
        return self.read("calls").replace(f"{self.root}/", "").replace(" \n", "\n").splitlines()

    def snapshot(self):
        """Return all files, with their contents."""
        files = (path for path in sorted(self.root.rglob("*")) if path.is_file())
        return {str(path): path.read_bytes() for path in files}
