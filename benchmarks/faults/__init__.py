"""Faults injected into real measurements: `python -m benchmarks.faults`."""
