"""docs/how-to/share-a-sweep.md, followed: someone else's table, converted, checked, passed on."""

import re
import runpy
import shlex
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from epochwatt import cli
from epochwatt.errors import DataError
from epochwatt.open_data.read import find_tables

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/how-to/share-a-sweep.md").read_text("utf-8")
EXAMPLE = PAGE[: PAGE.index("## Columns")]
QUICKER = {"score": ["--method", "physical", "--draws", "1"]}  # what a test adds


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """The table of the page, continued: a real TX1 in its authors' units."""
    monkeypatch.chdir(tmp_path)
    shown = re.search(r"```text\n(.*?)```", EXAMPLE, re.S)[1]
    ours = pd.read_csv(ROOT / "config/sweeps/translucence-tx1-5000.csv.gz").head(60)
    columns = {
        "core_count": ours.cores,
        "core_freq": ours.cpu_mhz * 1e3,
        "gpu_freq": ours.gpu_mhz * 1e6,
        "emc_freq": ours.emc_mhz * 1e6,
        "inference_time": ours.time_s,
        "energy": ours.time_s * ours.power_w,
    }
    table = pd.DataFrame(columns)
    assert shown.split("\n")[0] == ",".join(table)
    for line, row in zip(shown.split("\n")[1:3], table.to_numpy()[:2], strict=True):
        assert np.allclose([float(cell) for cell in line.split(",")], row, rtol=1e-3)
    table.to_csv("theirs.csv", index=False)
    return ours


def test_the_example_works_as_it_stands(theirs, capsys):
    Path("convert.py").write_text(re.search(r"file=convert.py\n(.*?)```", EXAMPLE, re.S)[1])
    runpy.run_path("convert.py")
    (table,) = find_tables("tx1-images.csv")
    assert np.allclose(table.column("power_w"), theirs.power_w)
    lines = re.findall(r"^\.venv/bin/epochwatt (.*)$", EXAMPLE, re.M)
    assert [line.split()[0] for line in lines] == ["validate", "score", "export", "validate"]
    for line in lines:
        words = shlex.split(line)
        assert cli.main([*words, *QUICKER.get(words[0], [])]) == 0, capsys.readouterr()
    assert "tx1-images.zip: valid" in capsys.readouterr().out
    (read,) = find_tables("tx1-images.zip")
    assert read.key == table.key
    alter_a_digit("tx1-images.zip")
    assert cli.main(["validate", "tx1-images.zip"]) == 1
    shown = re.findall(r"```text\n(tx1-images.zip: .*?)```", EXAMPLE, re.S)
    assert capsys.readouterr().out in shown
    with pytest.raises(DataError, match="SHA-256 differs"):
        find_tables("tx1-images.zip")


def alter_a_digit(path):
    """Alter a time of the second row of a package."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    table = content["sweeps-public.csv"]
    assert table.count(b",17.4574239,") == 1
    content["sweeps-public.csv"] = table.replace(b",17.4574239,", b",11.4574239,")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
