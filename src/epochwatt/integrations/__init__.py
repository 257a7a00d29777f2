"""Measure the epochs of training frameworks: thin translations of their events (Python 3.8)."""
