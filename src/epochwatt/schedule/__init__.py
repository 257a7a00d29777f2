"""Training and inference on one board, within a budget of latency and one of power."""
