"""The timed epoch, run by the interpreter that owns torch (board side: Python 3.6)."""
