"""The explorer of the landing page: all runs as points, power modes within a budget, pairs, epochs."""
