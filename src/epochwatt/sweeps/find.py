"""Sweeps by name: public ones, those in results/sweeps/, and files of mode tables.

Folders of open data, and tables that others made, come in by `epochwatt.open_data`, which asks here
for everything else.
"""

from pathlib import Path

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables
from epochwatt.sweeps.public.registry import converted, load_registry, public_folder, shipped_path

RESULTS = "results/sweeps"  # {sweep}.csv: measured or simulated by the workflow
SCORES = "scores.csv"  # beside them: how well methods predict sweeps
ENDINGS = (".csv", ".csv.gz")


def find_tables(
    name: str | Path, root: Path = Path(), public_data: Path | None = None
) -> list[ModeTable]:
    """Return the mode tables of a public sweep, of one in results/sweeps/, or of a file.

    Raises ConfigError: nothing has this name; what it stands for is not here, or cannot be read.
    `public_data`: folder of others' repositories (`public_folder`).
    """
    registry = load_registry(root)
    if str(name) in registry.sweeps:
        if registry.is_shipped(str(name)):
            return read_mode_tables(shipped_path(str(name), root))
        return converted(str(name), registry, public_folder(public_data)).tables
    paths = [root / RESULTS / f"{name}{ending}" for ending in ENDINGS]
    for path in (*paths, Path(name)):
        if path.is_file():
            return read_mode_tables(path)
    raise ConfigError(
        "no such sweep",
        found=str(name),
        allowed=", or ".join(filter(None, ["a file of mode tables", ", ".join(names(root))])),
        do="epochwatt sweeps lists them",
    )


def names(root: Path = Path()) -> list[str]:
    """Return the names of the sweeps in results/sweeps/ and of the public ones."""
    paths = sorted(path for path in (root / RESULTS).glob("*.csv*") if path.name != SCORES)
    made = [path.name.partition(".csv")[0] for path in paths if path.name.endswith(ENDINGS)]
    return [*dict.fromkeys(made), *load_registry(root).sweeps]
