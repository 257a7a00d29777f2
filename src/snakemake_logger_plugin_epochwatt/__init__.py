"""A Snakemake logger plugin: what `make run` shows in a terminal.

One bar for the whole with the time left, one line for the epoch under way, one for each finished
run or stage; warnings and failed jobs in full. All else is in Snakemake's own log file. Snakemake
finds the package by its name and imports it at every start, so what shows a run is imported only
where `logger: epochwatt`, in a profile, selects it.
"""

from snakemake_logger_plugin_epochwatt.handler import LogHandler, LogHandlerSettings

__all__ = ["LogHandler", "LogHandlerSettings"]
