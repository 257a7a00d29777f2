"""Every stock mode of the newer fake boards is set, read back, verified and put back."""

import csv
import subprocess
from pathlib import Path

import pytest
from fake_board import make_board, open_board

from epochwatt.errors import BoardError, RebootNeeded
from tests.fakeboard.kinds import KINDS

NVPMODEL = "usr/sbin/nvpmodel"
QUICK = "agx_orin-jp6"  # its first mode needs a restart
NEWER = [name for name, kind in KINDS.items() if kind.jetpack >= 6]


@pytest.fixture
def make_real(tmp_path):
    """Return a function that makes a fake board of a kind with the real helper."""

    def make(name):
        fake = make_board(tmp_path / name, name)
        return fake, open_board(fake)

    return make


def set_stock_mode(fake, board, mode):
    """Set a mode, with a restart where one is needed; return what was applied, and the advice."""
    try:
        return board.apply({"nvpmodel": mode.name}, "on"), ""
    except RebootNeeded as error:
        words = [fake.root / NVPMODEL, "-m", str(mode.id)]
        subprocess.run(words, input="YES\n", text=True, check=True, capture_output=True)
        fake.reboot()
        return board.apply({"nvpmodel": mode.name}, "on"), str(error)


def running_masks(fake):
    """Return the masks that the GPU of a fake board runs with."""
    names = {"FBP": "sys/devices/platform/gpu.0/fbp_pg_mask"}
    names |= {"TPC": "sys/devices/platform/gpu.0/tpc_pg_mask"}
    names |= {"GPU": "sys/kernel/gpu_static_pg/gpu_pg_mask"}
    present = {what: fake.root / name for what, name in names.items()}
    return {what: int(path.read_text()) for what, path in present.items() if path.exists()}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == QUICK else pytest.mark.thorough) for name in NEWER],
)
def test_every_stock_mode_is_set_read_back_verified_and_put_back(make_real, name):
    fake, board = make_real(name)
    for mode in fake.kind.modes:
        differs = mode.masks != running_masks(fake)
        applied, advice = set_stock_mode(fake, board, mode)
        assert (f"`sudo nvpmodel -m {mode.id}`" in advice) == differs
        assert applied["verified"], applied["unverified"]
        assert mode.masks == running_masks(fake)
        assert applied["read_back"]["cores"] == mode.cores
        if mode.emc_hz > 0:
            assert applied["read_back"]["emc_cap_mhz"] == mode.emc_hz / 1e6
        before_mhz = applied["read_back"]["gpu_max_mhz"]
        board.restore()
        assert not board.left_over()
        limit = fake.kind.gpu_hz[-1] if mode.gpu_hz[1] < 0 else mode.gpu_hz[1]
        assert before_mhz == pytest.approx(limit / 1e6, rel=0.03)


WORDS = Path(__file__).parents[3] / "data/nvpmodel/words.csv"


def test_what_nvpmodel_says_is_shown_with_what_follows(make_real):
    fake, board = make_real("orin_nano-jp6.2")
    for row in csv.DictReader(WORDS.read_text("utf-8").splitlines()):
        words, remedy = row["words"].replace("\\n", "\n"), row["remedy"]
        (fake.root / NVPMODEL).write_text(
            "#!/bin/sh\n# epochwatt stand-in\n"
            "[ $1 = -q ] && { echo 'NV Power Mode: 25W'; echo 1; exit 0; }\n"
            f"cat >&2 <<'END'\n{words}\nEND\nexit 255\n"
        )
        with pytest.raises(BoardError if remedy else RebootNeeded) as caught:
            board.apply({"nvpmodel": "15W"}, "on")
        assert all(line in str(caught.value) for line in words.splitlines())
        assert (remedy or "sudo nvpmodel -m ") in str(caught.value)
