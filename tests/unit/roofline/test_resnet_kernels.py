"""Work of the kernels of two networks: totals that others print, and the order of a profile."""

import pytest

from epochwatt.roofline.resnet_kernels import resnet_kernels


@pytest.mark.parametrize(
    ("network", "n_kernels", "n_convolutions", "giga_macs"),
    # SOURCE: torchvision's table of weights, GFLOPS (multiply-adds)
    [("resnet18", 24, 20, 1.81), ("resnet50", 57, 53, 4.09)],
)
def test_kernels_add_up_to_the_network(network, n_kernels, n_convolutions, giga_macs):
    kernels = resnet_kernels(network)
    assert len(kernels) == n_kernels
    assert sum(kernel.kind == "conv" for kernel in kernels) == n_convolutions
    assert sum(kernel.flops for kernel in kernels) / 2e9 == pytest.approx(giga_macs, rel=0.01)
    dense = kernels[-1]
    assert dense.moved_bytes / 4 == pytest.approx(dense.flops / 2, rel=0.01)  # weights, read once
