"""Numbers that the two papers print, and the groups of them to leave out of a fit."""
