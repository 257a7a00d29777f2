"""Boards made of files and small programs: for tests, and to try the workflow without a board."""
