"""Read the runs that models are fitted to."""
