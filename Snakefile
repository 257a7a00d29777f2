# The workflow of a checkout: workflow/Snakefile with the package that lies beside it. From any other
# folder it is used in the same way, with the package installed (.snakemake-workflow-catalog.yml).

import os
import sys
from pathlib import Path

SRC = str(
    Path(workflow.basedir) / "src"
)  # for this process and for every job's interpreter
sys.path.insert(0, SRC)
os.environ.update(PYTHONPATH=SRC)


module epochwatt:
    snakefile:
        "workflow/Snakefile"


use rule * from epochwatt


onstart:
    epochwatt.begin()


onsuccess:
    epochwatt.end()


onerror:
    epochwatt.end()
