"""Access to the measured machine: board or host (board side: Python 3.6)."""
