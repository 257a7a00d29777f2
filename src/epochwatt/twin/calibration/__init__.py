"""Fit the simulated boards to published numbers."""
