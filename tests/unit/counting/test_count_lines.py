"""`epochwatt count`: what it prints, and what it refuses."""

from pathlib import Path

import pytest

from epochwatt.board.training.workloads import WORKLOADS
from epochwatt.counting.count_lines import count_lines
from epochwatt.counting.count_workload import launches
from epochwatt.errors import ConfigError

REPOSITORY = Path(__file__).resolve().parents[3]


def cells(lines, first):
    """Return the cells of the first line that begins with a word."""
    return next(line.split() for line in lines if line.split()[:1] == [first])


def test_the_lines_add_up_to_all_kernels():
    lines = count_lines("lenet", batch_size=4, root=REPOSITORY)
    assert lines[0].startswith("lenet: training on one mini-batch of 4 samples, fp32; counted, not")
    kernels = [kernel for _, kernel in launches(WORKLOADS["lenet"], 4)]
    flops, moved = (sum(getattr(k, name) for k in kernels) for name in ("flops", "bytes"))
    both = [line.split() for line in lines if line.startswith("all")]
    assert len(both) == 2
    for row in both:
        assert row[1] == str(len(kernels))
        assert float(row[2]) == pytest.approx(flops / 1e9, rel=1e-3)
        assert float(row[5]) == pytest.approx(moved / 1e6, rel=1e-3)
        assert float(row[8]) == pytest.approx(flops / moved, rel=1e-2)
    assert int(cells(lines, "forward")[1]) < int(cells(lines, "backward")[1])


def test_a_network_from_a_library_needs_one_of_the_same_input():
    name = "epochwatt.board.training.networks.lenet5"
    ours = count_lines(name, like="lenet", root=REPOSITORY)
    assert ours[1:] == count_lines("lenet", root=REPOSITORY)[1:]
    with pytest.raises(ConfigError, match=r"of unknown input\n.*add --like"):
        count_lines(name, root=REPOSITORY)
    with pytest.raises(ConfigError, match="--like goes with a function"):
        count_lines("lenet", like="lenet", root=REPOSITORY)
    with pytest.raises(ConfigError, match="has no row 'nope'"):
        count_lines("nope", root=REPOSITORY)
