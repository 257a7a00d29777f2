"""Sweeps that others measured: converters of their own files, and the registry of what is known."""
