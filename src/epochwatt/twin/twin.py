"""Hold all that a simulation needs: `config/twin/` and the counted workloads."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from epochwatt.counting.kernel_counts import KernelCounts, load_kernel_counts
from epochwatt.errors import EpochwattError
from epochwatt.twin.boards import Board, Clocks, Modes, SampleFacts, load_boards, load_samples
from epochwatt.twin.parameters import Parameters, load_parameters


@dataclass(frozen=True)
class Twin:
    """The simulated boards with their parameters, and the networks that are known."""

    boards: dict[str, Board]
    samples: dict[str, SampleFacts]
    parameters: Parameters
    works: dict[str, KernelCounts]  # kernel counts of training, by network
    # clocks of the boards' power modes, where they are needed by name
    modes: Modes = field(default_factory=dict)
    inferred: dict[str, KernelCounts] = field(default_factory=dict)  # the same of inference

    def knowing(self, *works: KernelCounts) -> "Twin":
        """Return the same boards with more networks, each by its name and task."""
        by_task = {"train": dict(self.works), "infer": dict(self.inferred)}
        for work in works:
            by_task[work.task][work.model] = work
        return replace(self, works=by_task["train"], inferred=by_task["infer"])

    def find(
        self, device: str, model: str, dataset: str, task: str = "train"
    ) -> tuple[Board, KernelCounts, SampleFacts]:
        """Return board, network and data set by name; EpochwattError: one is not simulated."""
        works = self.inferred if task == "infer" else self.works
        try:
            return self.boards[device], works[model], self.samples[dataset]
        except KeyError as error:
            networks = f"networks that {task}: {', '.join(works)}"
            raise EpochwattError(
                f"the simulated boards know no {error}",
                allowed=f"boards {', '.join(self.boards)}; {networks}; "
                f"data sets {', '.join(self.samples)}",
            ) from None

    def clocks(self, device: str, power_mode: str) -> Clocks:
        """Return the clocks of a power mode; EpochwattError names those there are."""
        modes = self.modes.get(device, {})
        if power_mode not in modes:
            problem = f"{device} has no power mode {power_mode!r} with numbers"
            raise EpochwattError(problem, allowed=list(modes) or "none")
        return modes[power_mode]


def load_twin(config: Path, counts: Iterable[str]) -> Twin:
    """Read everything; ConfigError or RecordError names the file that is wrong."""
    boards, samples, parameters = load_boards(config), load_samples(config), load_parameters(config)
    return Twin(boards, samples, parameters, {}).knowing(*map(load_kernel_counts, counts))
