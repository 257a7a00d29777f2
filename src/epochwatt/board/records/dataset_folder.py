"""Name a data set's folder (board side: Python 3.6 grammar).

The run table names it and the measuring side opens it. It has its own module so that the run
table, and with it every figure, depends on no reader of data sets.
"""


def folder_name(dataset: str, source: str, scale: float) -> str:
    """Return the name of a data set's folder below the root of its storage medium."""
    digits = f"{scale:g}"
    if float(digits) != scale:
        digits = repr(scale)  # %g has six digits: two scales must not share a folder
    return f"{dataset}-{source}-x{digits}"
