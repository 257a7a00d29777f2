"""The models of time and power of a power mode."""
