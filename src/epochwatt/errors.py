"""The exception tree (board side: Python 3.6 grammar).

Each message says what was found, what is allowed, where it came from and what to do::

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


class EpochwattError(Exception):
    """Base of everything this package raises on purpose; shown without a traceback."""


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
