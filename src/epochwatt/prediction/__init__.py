"""Time and energy of any power mode of a board, from a few profiled ones; which mode to take."""
