"""config/claims.yaml."""

import shutil

import pytest

from epochwatt.claims.tolerances import TERMS, load_terms
from epochwatt.errors import ConfigError


@pytest.fixture
def checkout(tmp_path, request):
    root = request.path.parents[3]
    (tmp_path / "config").mkdir()
    shutil.copy(root / TERMS, tmp_path / TERMS)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("words:", "wrods:", "wrods"),
        ("value: 15, unit", "value: much, unit", "much"),
        ("unit: points, ", "", "unit"),
    ],
)
def test_wrong_terms_are_refused(checkout, old, new, told):
    path = checkout / TERMS
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=rf"(?s){TERMS}.*{told}"):
        load_terms(checkout)
