"""Beliefs of the models before any run. All of them are ours: no paper states any of these.

A fit from four modes leaves some coefficients open; these numbers decide how they are shared out,
how far an observation is followed, and how wide the intervals are. The tests count how many new
modes the intervals then hold.
"""

# Relative standard deviation of what is observed about a model of the right terms, far from all
# that was profiled; a belief that is worth as much as this many modes.
DEVIATION, DEVIATION_WEIGHT = 0.08, 3
# Over which distance deviations are alike, in natural logarithms of cores and clocks: their
# correlation is 0.6 for modes that are 0.7 apart (twice a clock) and 0.14 at 1.4 (four times). And
# what of a deviation is each mode's own: 0.8 %, since epochs and units differ by about 1 % (section
# 5.4 of SIGMETRICS 2023).
LENGTH, OWN = 0.7, 0.1
# Where profiled modes that are close to each other differ by more, their own part is larger: it is
# the likeliest of these, of which each is believed e^2 times less than the one before.
OWNS, LESS_BELIEVED = (OWN, 3 * OWN, 10 * OWN, 30 * OWN), 2.0
# How epochs that take longer than expected draw less than expected, and the reverse, as the
# correlation of both: where one part holds up the others, they rest. It is the median of nine
# devices that others measured (decision 0016, where it is from -0.6 to 0); a belief that
# is worth as much as what this many profiled modes show of it themselves.
TIME_WITH_POWER, TIME_WITH_POWER_WEIGHT = -0.3, 8

# Standard deviation of a term's share of the whole, about the shares below, which are in the order
# of `features.TIME` and `features.POWER`: each clock alike, waits and core shortage only where they
# are seen; GPU, CPU, memory and base load alike.
SHARE_SD = 0.4
TIME_SHARES = (1 / 3, 1 / 3, 1 / 3, 0.0, 0.0)
POWER_SHARES = (1 / 8, 1 / 8, 1 / 8, 1 / 8, 1 / 4, 1 / 4)

# Standard deviation of the exponents of time over cores and clocks, about zero (physics has them
# between 0 and -1).
EXPONENT_SD = 1.0
# The same of how far the exponents of a prior may be off, in deviations: a prior that misfits what
# was profiled is taken for wrong elsewhere too.
PRIOR_TILT = 0.7
# Standard deviation of the logarithm of time about its mean, or of a factor on a prior: open.
LEVEL_SD = 1.0

# All of them were set by hand, with the tables of docs/reference/benchmarks/prediction-measured.md
# at hand, and all but the shares and exponents on simulated worlds (`synthetic_truth`, seed 1),
# too: no program works them out.
# `epochwatt score` counts on sweeps of others how many new modes the intervals hold.
