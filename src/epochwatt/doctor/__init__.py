"""Self-test of the machine, and the archive for bug reports."""
