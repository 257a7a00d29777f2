"""Whatever stands in the metadata of a package, the checker answers with problems."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochwatt.open_data import layout
from epochwatt.open_data.check import check_folder

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just("../../etc/passwd"),
)


def places(value, path=()):
    """Yield the way to every value inside a JSON value."""
    yield path
    if isinstance(value, dict):
        inside = list(value.items())
    else:
        inside = list(enumerate(value)) if isinstance(value, list) else []
    for key, inner in inside:
        yield from places(inner, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("name", [n for n in layout.NEEDED if n.endswith(".json")])
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_value_in_the_metadata_is_answered(package, name, data):
    folder = Path("pack")  # hypothesis calls again with the same folders
    if not folder.exists():
        package()
    path = folder / name
    text = path.read_text()
    value = json.loads(text)
    where = data.draw(st.sampled_from(list(places(value))))
    new = changed(value, where, data.draw(VALUES))
    path.write_text(json.dumps(new))
    try:
        problems = check_folder(folder)
    finally:
        path.write_text(text)
    assert problems  # its checksum differs, at least
    assert all(str(problem) for problem in problems)
