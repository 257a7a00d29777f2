"""The exception tree (board side: Python 3.6 grammar).

An error is a problem and, where they are known, four fields: where it is, what was found there,
what is allowed, what to do. Code and tests use the fields; only `str()` makes text of them::

    EpochwattError
    +-- ConfigError          a key, value or row of config/ that cannot be
    +-- DataError            a data set that is missing, cut short or altered
    +-- RecordError          a record that cannot be read, or is inconsistent
        +-- DamagedError     its files are not as they were written: to be measured again
    +-- RecordWriteError     a record that cannot be written (full disk, permission)
    +-- LockedError          somebody else holds the working folder
    +-- TrainingError        the measured program itself failed (a loader worker died)
    +-- BoardError           a setting of the board that cannot be made, verified or put back
        +-- RebootNeeded     the board has to be restarted before the setting can be made
"""

from typing import Collection, Optional, Union

FIELDS = ("found", "allowed", "do")
Words = Optional[Union[str, Collection[object]]]


class EpochwattError(Exception):
    """Base of everything this package raises on purpose; shown without a traceback.

    `problem`: str One sentence without a full stop: "unknown figure 'fig99'".
    `where`: str, optional File, key, line or run it is about: "config/studies.yaml: my-study:
    batch_size".
    `found`, `allowed`, `do`: str or collection of str, optional What was there, what may be there,
    what the reader can do; a collection is a list of choices.
    """

    def __init__(
        self,
        problem: str,
        *,
        where: Optional[str] = None,
        found: Words = None,
        allowed: Words = None,
        do: Words = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.found = found
        self.allowed = allowed
        self.do = do

    def __str__(self) -> str:
        """Return the problem, and below it one indented line for each field that is known."""
        lines = [self.problem if self.where is None else "{}: {}".format(self.where, self.problem)]
        for name in FIELDS:
            value = getattr(self, name)
            if value is not None:
                text = value if isinstance(value, str) else ", ".join(str(item) for item in value)
                lines.append("  {}: {}".format(name, text))
        return "\n".join(lines)


class ConfigError(EpochwattError):
    """A configuration file holds a key, value or row that is not allowed."""


class DataError(EpochwattError):
    """A data set is missing, incomplete or not what its manifest says."""


class RecordError(EpochwattError):
    """A record of a measured epoch cannot be read or contradicts itself."""


class DamagedError(RecordError):
    """A file of a finished epoch is missing, cut short or altered."""


class RecordWriteError(EpochwattError):
    """A record cannot be written; the epoch counts as not measured."""


class LockedError(EpochwattError):
    """Another process holds the lock and waiting was not asked for."""


class TrainingError(EpochwattError):
    """The training itself failed; nothing of this epoch was recorded as valid."""


class BoardError(EpochwattError):
    """A setting of the board cannot be made, was not met when read back, or cannot be put back."""


class RebootNeeded(BoardError):  # noqa: N818
    """The board has to be restarted before the setting can be made; nothing was measured."""
