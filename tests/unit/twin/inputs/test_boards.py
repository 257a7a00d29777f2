"""The boards, their data sets, and what is refused in the files that describe them."""

import pytest
import yaml

from epochwatt.board.device.kinds import KINDS
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.twin.inputs.boards import load_boards, load_samples

SAMPLE = {"n_samples": 10, "file_bytes": 0, "pixels": 4, "mib": 1, "source": "made up"}


@pytest.fixture
def config(request):
    return request.config.rootpath / "config/twin"


def test_each_board_of_the_papers_is_there_with_parameters_and_rails_of_its_own(twin):
    assert set(twin.boards) == {"agx", "nx", "nano", "orin"}
    for board in twin.boards.values():
        for name in ("soc_w", "core_w_per_ghz_v2", "carrier_w", "suspend_w"):
            assert twin.parameters[f"{board.power}_{name}"] > 0
        rails = KINDS[board.kind].rails
        assert set(board.rails) == {rail.label for rail in rails}
        for limits in (board.cpu_mhz, board.gpu_mhz, board.emc_mhz, board.cpu_v, board.gpu_v):
            assert 0 < limits[0] < limits[1]


def test_a_part_that_is_not_known_is_told_with_those_that_are(twin):
    assert twin.find("agx", "lenet", "mnist")[0] is twin.boards["agx"]
    for names in (("tx2", "lenet", "mnist"), ("agx", "alexnet", "mnist"), ("agx", "lenet", "svhn")):
        wrong = next(n for n in names if n in ("tx2", "alexnet", "svhn"))
        with pytest.raises(
            EpochwattError, match=f"know no '{wrong}'\n  allowed: boards agx, nx, nano, orin"
        ):
            twin.find(*names)


# -- files that are wrong ------------------------------------------------------------------------


def edited(config, change):
    """Return the description of AGX Xavier with a change."""
    row = yaml.safe_load((config / "boards.yaml").read_text("utf-8"))["agx"]
    change(row)
    return yaml.safe_dump({"agx": row})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row.pop("ipc"), "agx is .*\n  allowed: .*ipc"),
        (lambda row: row.pop("kind"), "agx is .*\n  allowed: .*cores.*kind"),
        (lambda row: row.update(kind="tx2"), "agx: unknown kind of board\n  found: 'tx2'"),
        (lambda row: row.update(price=500), "agx is .*price"),
        (lambda row: row.update(cores="eight"), "agx: cores is 'eight'\n  allowed: a number"),
        (lambda row: row.update(ram_mib=-1), "agx: ram_mib is -1"),
        (lambda row: row.update(ipc=True), "agx: ipc is True"),
        (lambda row: row.update(ipc=float("nan")), "agx: ipc is nan"),
    ],
)
def test_a_board_that_is_none(config, tmp_path, change, said):
    (tmp_path / "boards.yaml").write_text(edited(config, change), "utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        load_boards(tmp_path)
    assert str(tmp_path / "boards.yaml") in str(caught.value)


def test_a_data_set_that_is_none(tmp_path):
    rows = {"good": SAMPLE, "bad": {**SAMPLE, "pixels": "many"}}
    (tmp_path / "samples.yaml").write_text(yaml.safe_dump(rows), "utf-8")
    with pytest.raises(ConfigError, match=r"samples\.yaml: bad: pixels is 'many'"):
        load_samples(tmp_path)


def test_a_unit_needs_a_factor_of_its_time_and_one_of_its_power(config, tmp_path):
    rows = yaml.safe_load((config / "boards.yaml").read_text())
    rows["nx"]["units"] = {"d4": [1.05]}
    (tmp_path / "boards.yaml").write_text(yaml.safe_dump(rows))
    with pytest.raises(ConfigError, match=r"nx: unit d4 is \[1.05\]"):
        load_boards(tmp_path)


def test_a_board_has_the_cores_clocks_and_rails_of_its_kind(twin):
    for board in twin.boards.values():
        kind = KINDS[board.kind]
        assert (board.title, board.cores) == (kind.title, kind.cores)
        assert board.gpu_mhz == (kind.gpu_hz[0] / 1e6, kind.gpu_hz[-1] / 1e6)
        assert list(board.rails) == [rail.label for rail in kind.rails]


def test_a_kind_may_have_its_former_name_and_other_clocks(config, tmp_path):
    row = yaml.safe_load((config / "boards.yaml").read_text("utf-8"))["orin"]
    row |= {"kind": "orin_agx", "emc_mhz": [204.0, 3200.0]}
    (tmp_path / "boards.yaml").write_text(yaml.safe_dump({"orin": row}), "utf-8")
    board = load_boards(tmp_path)["orin"]
    assert (board.kind, board.emc_mhz) == ("agx_orin", (204.0, 3200.0))
