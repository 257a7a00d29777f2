"""Refuse task, precision and compile where it is known beforehand that they cannot be had.

What only the measuring interpreter knows, its torch and its GPU, is checked when a job starts
(`epochwatt.board.training.arithmetic`).
"""

from epochwatt import columns
from epochwatt.board.device.kinds import KINDS
from epochwatt.columns import Factors
from epochwatt.errors import ConfigError
from epochwatt.study.config import Device

ARITHMETIC = ("task", "precision", "compile")
NOT_SIMULATED = ("precision", "compile")  # but inference is
BEFORE_AMPERE = {"tegra210": "Maxwell", "tegra194": "Volta"}  # SoC -> generation of its GPU
LAST_TORCH_1 = ("tegra210",)  # whose last JetPack has Python 3.6, hence a torch before torch 2


def refuse_arithmetic(factors: Factors, device: Device, path: str, where: str) -> None:
    """Raise ConfigError for a value that the run's device cannot have."""
    if factors["backend"] == columns.TWIN:
        for key in NOT_SIMULATED:
            if factors[key] != columns.FACTOR_DEFAULTS[key]:
                raise ConfigError(
                    f"{where}.{key} is {factors[key]!r}",
                    where=path,
                    allowed=f"on the twin: {columns.FACTOR_DEFAULTS[key]}, which alone its "
                    "parameters were fitted to",
                )
        return
    if not device.board:
        return
    kind = KINDS[device.board]
    if factors["precision"] in ("tf32", "bf16") and kind.soc in BEFORE_AMPERE:
        raise ConfigError(
            f"{where}.precision is {factors['precision']!r}",
            where=path,
            allowed=f"fp32, fp16: the {BEFORE_AMPERE[kind.soc]} GPU of {kind.title} has no other",
        )
    if factors["compile"] == "on" and kind.soc in LAST_TORCH_1:
        raise ConfigError(
            f"{where}.compile is 'on'",
            where=path,
            allowed=f"off: the last JetPack of {kind.title} has no torch 2",
        )
