"""Measure what this device reaches with micro-kernels (board side: Python 3.6 grammar)."""
