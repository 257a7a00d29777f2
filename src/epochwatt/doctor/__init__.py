"""Test the machine, and pack the archive for bug reports."""
