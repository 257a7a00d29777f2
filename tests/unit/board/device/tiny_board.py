"""The smallest board that the root helper can work on: a few files, and tools in shell."""

import json
import subprocess
import sys
from pathlib import Path

from epochwatt.board.device.helper_file import helper_file

GPU = "sys/devices/17000000.gv11b/devfreq/17000000.gv11b"
MASK = "sys/devices/gpu.0/tpc_pg_mask"

FILES = Path(__file__).parents[3] / "data/tiny_board"  # its nvpmodel.conf and its tools in shell
CONF = (FILES / "nvpmodel.conf").read_text()

# writes down its calls and what it finds set when it is called; exits with 255, as the real one may


class TinyBoard:
    """A board below a folder, with its helper."""

    def __init__(self, root: Path, python: str = sys.executable):
        self.root = root
        for name, content in self._files().items():
            self.write(name, content)
        for name in ("usr/sbin/nvpmodel", "usr/bin/jetson_clocks", "bin/systemctl"):
            self.write(name, (FILES / Path(name).name).read_text())
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
