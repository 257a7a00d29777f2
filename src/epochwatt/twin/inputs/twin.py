"""All that a simulation needs, read from `config/twin/` and from the counted workloads."""

from dataclasses import dataclass, field
from pathlib import Path

from epochwatt.counting.kernel_counts import KernelCounts, load_kernel_counts
from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.boards import Board, load_boards
from epochwatt.twin.inputs.clocks import Clocks, Modes
from epochwatt.twin.inputs.parameters import Parameters, load_parameters
from epochwatt.twin.inputs.samples import SampleFacts, load_samples


@dataclass(frozen=True)
class Twin:
    """The simulated boards with their parameters, and the networks that are known.

    Attributes
    ----------
    works : kernel counts by network
    modes : clocks of the boards' power modes, where they are needed by name
    """

    boards: dict[str, Board]
    samples: dict[str, SampleFacts]
    parameters: Parameters
    works: dict[str, KernelCounts]
    modes: Modes = field(default_factory=dict)

    def find(
        self, device: str, model: str, dataset: str
    ) -> tuple[Board, KernelCounts, SampleFacts]:
        """Return board, network and data set; EpochwattError names what there is instead."""
        try:
            return self.boards[device], self.works[model], self.samples[dataset]
        except KeyError as error:
            raise EpochwattError(
                f"the simulated boards know no {error}",
                allowed=f"boards {', '.join(self.boards)}; networks {', '.join(self.works)}; "
                f"data sets {', '.join(self.samples)}",
            ) from None

    def clocks(self, device: str, power_mode: str) -> Clocks:
        """Return the clocks of a power mode; EpochwattError names those there are."""
        of_device = self.modes.get(device, {})
        if power_mode not in of_device:
            problem = f"{device} has no power mode {power_mode!r} with numbers"
            raise EpochwattError(problem, allowed=list(of_device) or "none")
        return of_device[power_mode]


def load_twin(config: Path, works: dict[str, str]) -> Twin:
    """Read everything; ConfigError or RecordError names the file that is wrong.

    Parameters
    ----------
    config : folder of the twin's configuration
    works : path of the counts of each network
    """
    return Twin(
        load_boards(config),
        load_samples(config),
        load_parameters(config),
        {model: load_kernel_counts(path) for model, path in works.items()},
    )
