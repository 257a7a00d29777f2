"""Cost of a sample of each data set: `config/twin/samples.yaml`."""

from dataclasses import dataclass
from pathlib import Path

from epochwatt.twin.inputs.yaml_rows import entry, read_rows

FILE = "samples.yaml"


@dataclass(frozen=True)
class SampleFacts:
    """One data set.

    Attributes
    ----------
    n_samples : of an epoch at scale 1
    file_bytes : read per sample; 0: all samples were read before the loop
    pixels : decoded and transformed per sample
    mib : of the whole data set on the disk
    source : where the numbers are from
    """

    n_samples: int
    file_bytes: float
    pixels: float
    mib: float
    source: str


def load_samples(folder: Path) -> dict[str, SampleFacts]:
    """Read `samples.yaml`; ConfigError names the file and the data set that is wrong."""
    path = folder / FILE
    return {name: entry(SampleFacts, path, name, row) for name, row in read_rows(path).items()}
