"""Read power and load beside the training, in a process of its own (board side: Python 3.6)."""
