"""From the records of a run to one row per epoch. numpy and the standard library only."""
