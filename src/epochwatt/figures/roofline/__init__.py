"""Rooflines of time and energy with workloads below them, and what tuned modes save."""
