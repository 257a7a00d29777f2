"""The explorer of the landing page: runs as points, modes in a budget, pairs of runs, epochs."""
