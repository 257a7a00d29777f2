"""Records as Snakemake writes them, and the plugin that takes them."""

import io
import logging
from types import SimpleNamespace

from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_epochwatt import LogHandler


def record(text="", event=None, level=logging.INFO, **fields):
    """Return a log record of Snakemake's."""
    made = logging.LogRecord("snakemake.logging", level, __file__, 1, text, None, None)
    made.__dict__.update(fields)
    if event is not None:
        made.event = event
    return made


def job(jobid, rule="plot_fig02", log=(), **wildcards):
    """Return the record of a job that starts."""
    return record(
        event=LogEvent.JOB_INFO, jobid=jobid, rule_name=rule, wildcards=wildcards, log=list(log)
    )


def finished(jobid):
    """Return the record of a job that has finished."""
    return record(event=LogEvent.JOB_FINISHED, job_id=jobid)


def failed(jobid, rule="plot_fig02", log=(), message=None):
    """Return the record of a job that has failed."""
    return record(
        event=LogEvent.JOB_ERROR,
        level=logging.ERROR,
        jobid=jobid,
        rule_name=rule,
        rule_msg=message,
        log=list(log),
        aux={},
    )


class Terminal:
    """The plugin, and what it wrote to standard error or output, which are no terminals here."""

    def __init__(self, monkeypatch, settings=None, out=None, **common):
        self.screen = out or io.StringIO()
        monkeypatch.setattr("sys.stderr", self.screen)
        monkeypatch.setattr("sys.stdout", self.screen)
        given = dict.fromkeys(
            ("dryrun", "quiet", "verbose", "debug_dag", "printshellcmds", "nocolor", "stdout"),
            False,
        )
        self.handler = LogHandler(SimpleNamespace(**given | common), settings)

    def send(self, *records):
        for entry in records:
            self.handler.handle(entry)

    def start(self, **jobs):
        """Send what comes before the first job."""
        self.send(
            record("Assuming unrestricted shared filesystem usage."),
            record("Workflow has started!", LogEvent.WORKFLOW_STARTED),
            record("Building DAG of jobs..."),
            record("Provided cores: 2", LogEvent.RESOURCES_INFO, cores=2),
            record(
                "Job stats:\n...", LogEvent.RUN_INFO, stats=jobs | {"total": sum(jobs.values())}
            ),
        )

    @property
    def lines(self):
        return self.screen.getvalue().splitlines()
