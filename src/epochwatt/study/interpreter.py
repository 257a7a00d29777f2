"""Name the Python that the workflow's commands and scripts run in: that of its own process."""

import os
import shlex
import shutil
import sys


def lead_the_path() -> None:
    """Have `python3` in a command mean this interpreter, or with --sdm conda the environment's.

    Snakemake 9 does not quote the interpreter in a script's command, where a path with spaces falls
    apart. Such a one goes by its bare name from then on, and is found on the PATH.
    """
    folder = os.path.dirname(shutil.which(sys.executable) or sys.executable)
    os.environ["PATH"] = os.pathsep.join([folder, *os.get_exec_path()])
    if shlex.quote(sys.executable) != sys.executable:
        sys.executable = os.path.basename(sys.executable)
