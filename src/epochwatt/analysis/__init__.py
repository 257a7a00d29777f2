"""Across runs: reading their epochs, exports, the summary."""
