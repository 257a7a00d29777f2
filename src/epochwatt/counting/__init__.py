"""Count what a network asks of a GPU, kernel by kernel; for the simulator and the rooflines."""
