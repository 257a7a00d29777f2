"""The sampler: a process that reads power and load beside the training (board side: Python 3.6)."""
