"""The machine that is measured (board side: Python 3.6)."""
