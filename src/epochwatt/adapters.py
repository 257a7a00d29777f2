"""What the scripts of `workflow/scripts/` share: the only module that serves Snakemake's object."""

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from epochwatt.errors import EpochwattError


@contextmanager
def job_log(path: str) -> Iterator[None]:
    """Send logging to the rule's log file and to the screen; explain known errors in a line.

    A `log:` of a script rule captures nothing by itself. The traceback goes into the file; the
    screen shows it only for an error that nobody expected.
    """
    with open(path, "w", encoding="utf-8") as handle:
        handlers: list[logging.Handler] = [logging.StreamHandler(s) for s in (handle, sys.stderr)]
        logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=handlers, force=True)
        try:
            yield
        except EpochwattError as error:
            traceback.print_exc(file=handle)
            logging.getLogger(__name__).error("error: %s", error)
            sys.exit(1)
        except BaseException:
            traceback.print_exc(file=handle)
            raise
