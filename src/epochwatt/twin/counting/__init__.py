"""Count the GPU kernels of a network; the only part of the simulator that needs torch."""
