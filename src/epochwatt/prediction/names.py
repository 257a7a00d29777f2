"""Names of targets, training sets and the method of the papers, in tables and models."""

TIME, POWER, ENERGY = "time_s", "power_w", "energy_wh"
TARGETS = (TIME, POWER, ENERGY)

# Training sets: choices of four modes as power_modes.json names them, and all observed modes
SEARCHED, STANDARDISED, PUBLISHED = "paper", "paper_standardised", "published"
DESIGNED, LEFT_OUT, ALL = "designed", "left_out", "all"
EVERY = "every subset of four"

REFERENCE = "paper"  # the method that the others are compared with: the published one
