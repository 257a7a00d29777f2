"""The page cache is emptied, and looked at without being filled."""

import os

import pytest

from epochwatt.board.device import page_cache

PAGES = 64


@pytest.fixture
def cold_file(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(PAGES * 4096))
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    if page_cache.resident_pct([str(path)]) == 100.0:
        pytest.skip("this file system keeps its pages whatever is advised (tmpfs)")
    return path


def test_a_forgotten_file_is_not_resident_and_looking_does_not_read_it(cold_file):
    assert page_cache.resident_pct([str(cold_file)]) == 0.0
    assert page_cache.resident_pct([str(cold_file)]) == 0.0


def test_without_permission_the_data_set_alone_is_forgotten(cold_file, tmp_path):
    cold_file.read_bytes()
    assert page_cache.drop([str(cold_file)], drop_caches=str(tmp_path / "no" / "such")) == "advised"
    assert page_cache.resident_pct([str(cold_file)]) == 0.0


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize(("mode", "share"), [(0o644, None), (0o666, 0.0)])
def test_of_files_of_others_only_who_may_write_them_knows_the_share(
    cold_file, as_stranger, mode, share
):
    """mincore(2) tells anybody else that every page is resident."""
    cold_file.chmod(mode)
    cold_file.parent.chmod(0o755)
    found = as_stranger(cold_file.parent, page_cache.resident_pct, [cold_file.name])
    assert found == share
