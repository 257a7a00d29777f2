"""Simulated boards: the run of any row of the run table, from a model of its parts."""
