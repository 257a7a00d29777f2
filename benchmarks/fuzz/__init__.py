"""Damaged inputs for everything that reads: `python -m benchmarks.fuzz`."""
