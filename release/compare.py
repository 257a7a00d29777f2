"""Compare a rerun with the archive: `python compare.py results rerun/results`."""

import math
import re
import sys
from collections import Counter
from pathlib import Path

DIGITS = 9  # other processors round the last digits otherwise
NUMBER = re.compile(rb"-?\d+\.\d+(?:e[+-]?\d+)?")
TEXTS = {".csv", ".json", ".txt", ".svg", ".html"}
OTHER = re.compile(r"index\.html|summary\.txt")  # name the machine, the folder and the versions


def main(reference, rerun):
    """Print how many files are equal, and name those that are not; return 1 if there are any."""
    counts = Counter()
    for path in sorted(path for path in reference.rglob("*") if path.is_file()):
        name = str(path.relative_to(reference))
        if OTHER.fullmatch(name):
            continue
        found = compare(path, rerun / name)
        counts[found] += 1
        if found not in (EQUAL, ROUNDED):
            print(f"  {name}: {found}")
    for found, count in counts.most_common():
        print(f"{count:5d} files {found}")
    return int(counts.total() != counts[EQUAL] + counts[ROUNDED] or not counts)


EQUAL, ROUNDED = "equal byte by byte", f"equal in all numbers to {DIGITS} digits"


def compare(reference, rerun):
    """Say how a file differs from that of the archive."""
    if not rerun.exists():
        return "not made"
    one, other = reference.read_bytes(), rerun.read_bytes()
    if one == other:
        return EQUAL
    if reference.suffix in TEXTS and is_close(one, other):
        return ROUNDED
    return "DIFFERENT"


def is_close(one, other):
    """Tell whether two texts differ in the last digits of numbers alone, and in torch's version."""
    texts = [re.sub(rb'"torch": "[^"]*"', b"", text) for text in (one, other)]
    if len({NUMBER.sub(b"", text) for text in texts}) > 1:
        return False
    pairs = zip(*(map(float, NUMBER.findall(text)) for text in texts), strict=True)
    return all(math.isclose(*pair, rel_tol=10.0**-DIGITS, abs_tol=1e-12) for pair in pairs)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
