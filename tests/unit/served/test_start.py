"""Processes that serve: where none can be, each job starts Python anew."""

import tempfile

from epochwatt.served import ask
from epochwatt.served.serve import start_servers, stop_servers


def test_a_path_too_long_for_a_socket_means_no_servers(tmp_path, monkeypatch):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setenv(ask.SOCKETS, "")  # put back afterwards
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    servers = start_servers()
    stop_servers(servers)
    assert (servers, list(folder.iterdir())) == ([], [])
    assert ask.ask("counts", []) is None
