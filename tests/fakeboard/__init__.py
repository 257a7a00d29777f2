"""Fake boards of files and small programs, for tests and for trials without a board."""
