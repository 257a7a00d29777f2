"""A package that was damaged, or that says what it is not, is refused: file, line, column."""

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochwatt.board.records.checksums import write_sums
from epochwatt.errors import DataError
from epochwatt.open_data import package as layout
from epochwatt.open_data.check import check_folder
from epochwatt.open_data.read import read_package, report_lines, unpacked

from .conftest import sweep_rows

TABLE = "sweeps-measured.csv"


def edit_cell(folder, line, column, cell, table=TABLE):
    lines = (folder / table).read_text().split("\n")
    cells = lines[line - 1].split(",")
    cells[lines[0].split(",").index(column)] = cell
    lines[line - 1] = ",".join(cells)
    (folder / table).write_text("\n".join(lines))


def edit_json(folder, name, change):
    value = json.loads((folder / name).read_text())
    change(value)
    (folder / name).write_text(json.dumps(value))


def places(folder):
    return [problem.where for problem in check_folder(folder)]


def text(folder):
    return "\n".join(map(str, check_folder(folder)))


def test_a_package_as_it_was_written_is_valid(package):
    folder = package()
    assert check_folder(folder) == []
    lines, valid = report_lines(folder)
    assert valid
    assert lines == [
        f"{folder}: valid",
        "  planted: 2 workloads on agx_orin, 8 rows; varied: gpu_mhz; measured with epochwatt",
    ]


@pytest.mark.parametrize(
    ("column", "cell", "allowed"),
    [
        ("time_s", "-3", "a finite number above 0 in s"),
        ("time_s", "1e999", "a finite number above 0 in s"),
        ("power_w", "12 W", "a finite number above 0 in W"),
        ("batch_size", "16.5", "a whole number above 0 in samples"),
        ("task", "training", "train, infer"),
        ("valid", "yes", "true or false"),
        ("power_scope", "wall", "board, module, socket, gpu, cpu_package"),
        ("repeat", "-1", "a whole number of at least 0"),
    ],
)
def test_a_wrong_cell_is_named_even_where_all_checksums_are_made_anew(
    package, reseal, column, cell, allowed
):
    folder = package()
    edit_cell(folder, 3, column, cell)
    reseal(folder)
    (problem,) = check_folder(folder)
    assert problem.where == f"{TABLE}, line 3, column {column}"
    assert problem.found == (cell or "nothing")
    assert problem.allowed == [allowed]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_flipped_bit_of_a_table_is_found(package, data):
    folder = Path("pack")  # hypothesis calls again with the same folders
    if not folder.exists():
        package()
    whole = (folder / TABLE).read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    bit = data.draw(st.integers(0, 7))
    damaged = bytearray(whole)
    damaged[position] ^= 1 << bit
    (folder / TABLE).write_bytes(bytes(damaged))
    wheres = places(folder)
    (folder / TABLE).write_bytes(whole)
    assert TABLE in wheres


@pytest.mark.parametrize("name", [*layout.NEEDED, layout.DEVICES, TABLE])
def test_a_flipped_bit_of_any_file_is_found(package, name):
    folder = package()
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(bytes(content))
    wheres = places(folder)
    assert wheres  # a line of SHA256SUMS names another file
    assert name == layout.SUMS or any(name in place for place in wheres)


@pytest.mark.parametrize("name", [*layout.NEEDED, layout.DEVICES, TABLE])
def test_a_missing_file_is_named(package, name):
    folder = package()
    (folder / name).unlink()
    assert f"{name} is missing" in text(folder)
    with pytest.raises(DataError):
        read_package(folder)


def test_a_file_that_was_added_is_named(package):
    folder = package()
    (folder / "more.csv").write_text("a\n1\n")
    assert places(folder) == ["more.csv"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("licenses"), "datapackage.json: no licence"),
        (lambda d: d["licenses"][0].update(name="CC-BY-5"), "found: CC-BY-5"),
        (
            lambda d: next(
                field
                for field in d["resources"][0]["schema"]["fields"]
                if field["name"] == "power_w"
            ).update(unit="mW"),
            "unit of column power_w\n  found: mW\n  allowed: W",
        ),
        (lambda d: d["resources"][0].update(name="sweeps"), "the name of a table with provenance"),
        (lambda d: d["epochwatt"].update(format=9), "found: format 9"),
    ],
)
def test_wrong_statement_is_named_even_where_all_checksums_fit(package, change, message):
    folder = package()
    edit_json(folder, layout.DESCRIPTOR, change)
    write_sums(str(folder), durable=False)
    assert message in text(folder)


def test_a_package_of_the_first_format_is_read_with_its_further_files(package, reseal):
    folder = package()
    edit_json(folder, layout.DESCRIPTOR, lambda d: d["epochwatt"].update(format=1))
    for name in ("ro-crate-metadata.json", "cell-checksums.json"):
        (folder / name).write_text("{}")
    reseal(folder)
    assert check_folder(folder) == []
    assert len(read_package(folder)) == 2


# -- simulated is never measured -------------------------------------------------------------------


@pytest.fixture
def simulated(package):
    return package(sweep_rows("simulated"))


def test_simulated_stands_in_every_name_and_table(simulated):
    assert simulated.name == "pack-simulated"
    assert "SIMULATED, not measured" in (simulated / layout.README).read_text()
    for name in (layout.DESCRIPTOR, layout.CROISSANT):
        content = json.loads((simulated / name).read_text())
        assert content["name"] == "pack-simulated"
        assert content["description"].startswith("SIMULATED, not measured")
    rows = (simulated / "sweeps-simulated.csv").read_text().splitlines()[1:]
    assert all(",simulated," in row for row in rows)


def test_a_simulated_table_under_a_measured_name_is_refused_cell_by_cell(simulated, reseal):
    for name in (layout.DESCRIPTOR, layout.CROISSANT):
        path = simulated / name
        path.write_text(
            path.read_text()
            .replace("simulated", "measured")
            .replace("SIMULATED, not measured", "measured with epochwatt")
        )
    (simulated / "sweeps-simulated.csv").rename(simulated / TABLE)
    folder = simulated.rename(simulated.with_name("pack-measured"))
    reseal(folder)
    problems = check_folder(folder)
    cells = [p for p in problems if p.problem == "a row of another provenance"]
    assert [p.where for p in cells] == [
        f"{TABLE}, line {n}, column provenance" for n in range(2, 10)
    ]
    assert cells[0].found == "simulated"


def test_a_simulated_package_called_measured_everywhere_has_no_records(
    simulated, reseal, replace_everywhere
):
    replace_everywhere(simulated, "SIMULATED, not measured", "measured with epochwatt")
    replace_everywhere(simulated, "Simulated, not measured", "Measured with epochwatt")
    replace_everywhere(simulated, "simulated", "measured")
    folder = simulated.rename(simulated.with_name("pack-measured"))
    reseal(folder)
    (problem,) = check_folder(folder)
    assert problem.where == f"{TABLE}, line 2, column sweep"
    assert problem.problem == "called measured, and records.json lists no record of it"


# -- .zip files ------------------------------------------------------------------------------------


def with_password(content):
    for signature, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(signature) + place] |= 1


def with_a_changed_byte(content):
    content[30 + len("datapackage.json")] = 0xFF  # behind the header: no such block


@pytest.mark.parametrize("damage", [with_password, with_a_changed_byte])
def test_a_zip_file_that_cannot_be_unpacked_is_refused(damage, tmp_path):
    path = tmp_path / "pack.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("datapackage.json", "{}" * 99)
    content = bytearray(path.read_bytes())
    damage(content)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"pack\.zip cannot be unpacked"), unpacked(path):
        pytest.fail("it was unpacked")


def test_a_file_outside_the_zip_files_folder_is_refused(tmp_path):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../outside.txt", "x")
    with pytest.raises(DataError, match="no folders"), unpacked(path):
        pass
    assert not (tmp_path / "outside.txt").exists()


# -- metadata of any shape -------------------------------------------------------------------------

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


def ways(value, path=()):
    """Yield the way to every value inside a JSON value."""
    yield path
    if isinstance(value, dict):
        inside = list(value.items())
    else:
        inside = list(enumerate(value)) if isinstance(value, list) else []
    for key, inner in inside:
        yield from ways(inner, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("name", [n for n in layout.NEEDED if n.endswith(".json")])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_in_the_metadata_is_answered(package, name, data):
    folder = Path("pack")  # hypothesis calls again with the same folders
    if not folder.exists():
        package()
    path = folder / name
    text = path.read_text()
    value = json.loads(text)
    where = data.draw(st.sampled_from(list(ways(value))))
    new = changed(value, where, data.draw(VALUES))
    path.write_text(json.dumps(new))
    try:
        problems = check_folder(folder)
    finally:
        path.write_text(text)
    assert problems  # its checksum differs, at least
    assert all(str(problem) for problem in problems)
