"""A Snakemake logger plugin: what `make run` shows in a terminal.

Snakemake finds the package by its name and imports it at every start, so what shows a run is
imported only where `logger: epochwatt`, in a profile, selects it.
"""

from snakemake_logger_plugin_epochwatt.handler import LogHandler, LogHandlerSettings

__all__ = ["LogHandler", "LogHandlerSettings"]
