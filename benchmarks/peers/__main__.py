"""`python -m benchmarks.peers [ROUNDS]`: several rounds in turn, as the table of README.md."""

import os
import sys

from benchmarks.peers.compare import OURS, SECONDS, compare, markdown
from epochwatt.device import host
from epochwatt.device.locks import machine_lock


def main() -> None:
    """Measure and print."""
    n_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with machine_lock().acquire({"benchmarks of": os.getcwd()}, on_wait=print):
        before = os.getloadavg()[0]
        found = compare(SECONDS, n_rounds, may_install=True)
    print("\n".join(markdown(found)))
    deviations = ", ".join(f"{ms:.2f}" for ms in found[OURS].deviation_ms)
    machine = host.describe()["machine"]
    print(f"\ndeviation of {OURS} from its plan, p99: {deviations} ms")
    print(f"{machine['n_cpus']} x {machine['cpu_model']}, load {before:.1f} before", end=", ")
    print(f"{os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
