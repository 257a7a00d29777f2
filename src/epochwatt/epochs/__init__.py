"""Make one row per epoch from the records of a run: numpy and the standard library only."""
