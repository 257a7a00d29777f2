"""Figures of SIGMETRICS 2023."""
