"""config/claims.yaml: the tolerances and words that predicates rest on."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from epochwatt.claims.verdict import Tolerated
from epochwatt.columns import Factors
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

TERMS = "config/claims.yaml"

# keyword of a predicate -> factor of a run
KEYWORDS = {
    "storage": "storage",
    "w": "num_workers",
    "bs": "batch_size",
    "pm": "power_mode",
    "dvfs": "dvfs",
    "cache": "cache_policy",
    "scale": "dataset_scale",
}
# factor of a run -> its key in config/published/, where that is another
PRINTED = {"cache_policy": "cache", "dataset_scale": "scale"}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tolerance(_Part):
    """One tolerance; the papers give none."""

    value: float = Field(allow_inf_nan=False, description="its value")
    unit: str = Field(description="its unit: %, points, 1/s, or a factor")
    about: str = Field(description="what it is for")
    slack: bool | None = Field(
        None,
        description="true: it widens a printed number; false: it is itself the limit; empty: true "
        "where its name begins with EPS",
    )


class Terms(_Part):
    """config/claims.yaml: what the predicates of the take-aways may use besides functions."""

    tolerances: dict[str, Tolerance] = Field(description="NAME in predicates -> value")
    words: list[str] = Field(description="names that stand for themselves")
    sets: dict[str, Any] = Field(description="NAME -> list of values, or key -> list of values")
    long_run_epochs: dict[str, int] = Field(
        description="device -> epochs that its 15 h run must have"
    )

    @property
    def numbers(self) -> dict[str, float]:
        """Tolerance -> value."""
        return {name: tolerance.value for name, tolerance in self.tolerances.items()}

    def is_slack(self, name: str) -> bool:
        """Say whether a tolerance widens a printed number; else it is itself the limit."""
        slack = self.tolerances[name].slack
        return name.startswith("EPS") if slack is None else slack

    def constants(self) -> dict[str, Any]:
        """Return all names of predicates but functions: words, sets and tolerances."""
        tolerances = {
            name: Tolerated(value, 0.0 if self.is_slack(name) else None, name)
            for name, value in self.numbers.items()
        }
        return {**{word: word for word in self.words}, **self.sets, **tolerances}

    def factors(self, device: str, model: str, keys: Factors) -> Factors:
        """Fill in the papers' defaults: the factors of the run that a predicate names.

        `keys`: by `KEYWORDS` and `instance`; TypeError where there is another
        """
        unknown = set(keys) - set(KEYWORDS) - {"instance"}
        if unknown:
            raise TypeError(f"{', '.join(sorted(unknown))}: allowed are {', '.join(KEYWORDS)}")
        defaults = {**DEFAULTS, **DEVICE_DEFAULTS.get(device, {})}
        named = {KEYWORDS.get(word, word): value for word, value in keys.items()}
        factors = ("instance", *KEYWORDS.values())
        filled = {name: defaults.get(PRINTED.get(name, name), "") for name in factors}
        return {"device": device, "model": model, **filled, **named}


def margin(
    value: float, printed: float, tolerances: Mapping[str, float], *, is_percentage: bool
) -> float:
    """Return how far a value is inside our tolerance of a printed one: % of it, or points.

    Negative: the printed number is off. ZeroDivisionError: 0 is printed, and is no percentage.
    """
    if is_percentage:
        return tolerances["NEAR_PP"] - abs(value - printed)
    return tolerances["NEAR"] - abs(100.0 * (value / printed - 1.0))


def load_terms(root: Path = Path()) -> Terms:
    """Read config/claims.yaml below `root`, the checkout; ConfigError when it is wrong."""
    path = root / TERMS
    return _terms(path, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=4)  # each claim of each panel asks for them
def _terms(path: Path, written_ns: int) -> Terms:
    return validated(Terms, _tuples(read_yaml(path)), TERMS)


def _tuples(content: Any) -> Any:
    """Turn lists inside lists into tuples, which compare and hash as those of a predicate do."""
    if isinstance(content, dict):
        return {key: _tuples(value) for key, value in content.items()}
    if isinstance(content, list):
        return [tuple(part) if isinstance(part, list) else part for part in content]
    return content
