"""A published number in words, for who does not know its table (`config/published/`)."""

from typing import Any

from epochwatt.published.numbers import Measurement, Relation

METRICS = {  # what is not here is told by its column
    "e2e_s": "time of an epoch",
    "stall_s": "stall (wait, hand-over and copy)",
    "stall_ms_per_minibatch": "stall of a mini-batch",
    "compute_s": "compute",
    "compute_ms_per_minibatch": "compute of a mini-batch",
    "preprocess_s": "pre-processing",
    "cached_pct": "share of the data set in the page cache",
    "energy_wh": "energy of an epoch",
    "power_w": "mean power",
    "gpu_util_pct": "GPU utilisation",
    "cpu_util_pct": "CPU utilisation",
    "cpu_below_peak_time_pct": "time with the CPU clock below its peak",
    "emc_below_max_time_pct": "time with the memory clock below its highest",
    "(stall_s+compute_s)/e2e_s": "share of stall and compute in the epoch",
    "stall_s/e2e_s": "share of the stall in the epoch",
    "baseload_wh/energy_wh": "share of the base load (the idle board) in the energy",
}
FORMULAS = {  # formula of a relation -> what it adds to the metric; {over}: what was varied
    "100*(B-A)/A": ", change from {a} to {b}",
    "mean 100*(B-A)/A": ", mean change from {a} to {b}",
    "100*|B-A|/A": ", change up or down from {a} to {b}",
    "A/B": ", {a} over {b}",
    "B/A": ", {b} over {a}",
    "100*part/whole": "{over}",
    "min..max": ", least to most{over}",
    "100*(max-min)/max": ", (most - least) / most{over}",
}
KEYS = {"num_workers": "workers", "batch_size": "batch", "power_mode": "mode"}
QUALIFIERS = {
    "approx": "about ",
    "at_least": "at least ",
    "at_most": "at most ",
    "less_than": "less than ",
}
UNITS = {"pct": "%", "x": "times"}


def told(fact: Measurement | Relation) -> str:
    """Return what a published number is of, and the number."""
    top = f" to {fact.value_hi:g}" if fact.value_hi is not None else ""
    number = f"{QUALIFIERS.get(fact.qualifier, '')}{fact.value:g}{top}"
    return f"{_subject(fact)}: {number} {UNITS.get(fact.unit, fact.unit)}"


def _subject(fact: Measurement | Relation) -> str:
    metric = METRICS.get(fact.metric, fact.metric)
    if not isinstance(fact, Relation):
        return metric
    varied = [key for key, value in fact.config_a.items() if isinstance(value, tuple)]
    over = f", over {_side(fact.config_a, varied)}" if varied else ""
    other = [key for key in fact.config_a if fact.config_a[key] != fact.config_b.get(key)]
    a, b = (_side(config, other) for config in (fact.config_a, fact.config_b))
    return metric + FORMULAS.get(fact.formula, f", {fact.formula}").format(a=a, b=b, over=over)


def _side(config: Any, keys: list[str]) -> str:
    """Return the keys of a side that tell it, and their values."""
    return ", ".join(f"{KEYS.get(key, key)} {_word(config.get(key))}" for key in keys)


def _word(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
