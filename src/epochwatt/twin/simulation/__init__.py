"""Simulate runs and idle powers, and write them as a measurement would."""
