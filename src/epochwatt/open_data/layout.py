"""Name the files of a package, its statement of provenance, its licence."""

import re
from collections.abc import Collection

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from epochwatt import columns
from epochwatt.board.records.checksums import SUMS

# of the package; a reader refuses those that are younger than itself. 1 had an RO-Crate and a
# checksum of each line and column as well; they stay in it, and SHA256SUMS covers them
FORMAT = 2
DESCRIPTOR = "datapackage.json"
CROISSANT = "croissant.json"
DEVICES = "devices.json"
RECORDS = "records.json"
README = "README.md"
LICENCE = "LICENSE"
FOLDER = "its folder"  # where a problem is that the folder's name has
NEEDED = (DESCRIPTOR, CROISSANT, README, SUMS)

NOT_MEASURED = ("fake", "simulated")  # provenances that a name has to say
STATEMENTS = {
    "measured": "measured with epochwatt",
    "public": "measured by others",
    "simulated": "SIMULATED, not measured",
    "fake": "FROM A FAKE BOARD, not measured",
}
_PARTS = re.compile(r"[^a-z0-9]+")


def provenance_of(backend: str, imported: str) -> str:
    """Return the provenance of a run from two of its factors; logs of other programs are public."""
    if backend in ("host", "jetson"):
        return "public" if imported else "measured"
    return {"twin": "simulated"}.get(backend, "fake")


def statement(provenances: Collection[str]) -> str:
    """Return in words where the rows of a package come from, what is not measured first."""
    order = (*NOT_MEASURED, *columns.PROVENANCES)
    return "; ".join(STATEMENTS[p] for p in dict.fromkeys(order) if p in provenances)


def marked(name: str, provenances: Collection[str]) -> str:
    """Return a name that says what in the package is not measured.

    `tx2` becomes `tx2-simulated`, or `tx2-partly-simulated` where other rows are there, too; a name
    that says so already stays.
    """
    words = [word for word in NOT_MEASURED if word in provenances]
    partly = ["partly"] if words and set(provenances) - set(words) else []
    missing = [word for word in (*partly, *words) if word not in _PARTS.split(name.lower())]
    return "-".join((name, *missing))


def unmarked(name: str, provenances: Collection[str]) -> list[str]:
    """Return the words that a name has to say of the provenances, and does not."""
    present = _PARTS.split(name.lower())
    return [word for word in NOT_MEASURED if word in provenances and word not in present]


def licence_problem(licence: str) -> str:
    """Return what is wrong with the name of a licence; empty: nothing."""
    try:
        return "" if canonicalize_license_expression(licence) == licence else "is written otherwise"
    except InvalidLicenseExpression as error:
        return f"is no licence of the SPDX list ({error})"


def licence_url(licence: str) -> str:
    """Return the page of a licence; of an expression of several, the page of the list."""
    single = re.fullmatch(r"[\w.+-]+", licence) and not licence.startswith("LicenseRef-")
    return f"https://spdx.org/licenses/{licence}.html" if single else "https://spdx.org/licenses/"
