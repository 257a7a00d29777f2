"""Printed numbers of runs beside the same of ours."""

from pathlib import Path

import pytest

from epochwatt import columns
from epochwatt.pages.printed import write_printed
from epochwatt.tables import read_cells

RUN = {
    **{"setup": "sigmetrics2023", "backend": "twin", "device": "agx", "instance": "d1"},
    **{"model": "lenet", "dataset": "mnist", "dataset_source": "official", "storage": "hdd"},
    **{"batch_size": 16, "power_mode": "g", "dataset_scale": 1.0, "dvfs": "off"},
}


@pytest.fixture
def printed(checkout, write_epochs, pytestconfig, tmp_path):
    """Return a function that gives the rows of the table by id, of runs: what differs, epochs."""

    def call(*runs, idle=""):
        lines = []
        for n, (factors, *epochs) in enumerate(runs):
            path = write_epochs(f"r{n}", columns.with_defaults(RUN | factors), *epochs)
            header, *rows = Path(path).read_text("utf-8").splitlines()
            lines += rows
        table = tmp_path / "all.csv"
        table.write_text("\n".join([header, *lines]) + "\n")
        config, path = pytestconfig.rootpath / "config", tmp_path / "printed.csv"
        places = (str(config / "published"), str(config / "twin"))
        write_printed(str(table), idle, *places, str(path))
        return {row["published_id"]: row for row in read_cells(path)}

    return call


EPOCHS = [{"stall_s": 99.0}, {"stall_s": 20.0}, {"stall_s": 24.0}]


def test_ours_is_the_mean_of_the_epochs_that_the_paper_means(printed):
    rows = printed(({"num_workers": 0}, *EPOCHS))
    row = rows["S5.1.3-01"]
    assert (float(row["value"]), row["value_hi"], float(row["published"])) == (22.0, "", 22.0)
    told = ("backend", "seen_by_fit", "published_qualifier", "is_off")
    assert [row[name] for name in told] == ["twin", "True", "exact", "False"]
    assert "S5.1.3-02" not in rows  # of one worker there is no run


def test_a_change_is_there_once_both_runs_are(printed):
    model = {"model": "resnet", "dataset": "cifar10"}
    one = ({**model, "num_workers": 0}, {}, {"e2e_s": 10.0})
    assert "RS5.1.4-02" not in printed(one)
    both = printed(one, ({**model, "num_workers": 1}, {}, {"e2e_s": 9.0}))
    assert float(both["RS5.1.4-02"]["value"]) == pytest.approx(-10.0)


def test_a_board_that_idles_is_beside_its_number_too(printed, tmp_path):
    idle = tmp_path / "idle.csv"
    idle.write_text(
        "backend,device,instance,power_mode,dvfs,state,power_scope,power_w\n"
        "twin,agx,d1,g,off,i,module,7.6\ntwin,agx,d1,g,off,i,socket,12\n"
        "twin,agx,d1,g,off,iv,socket,3\n"
    )
    rows = printed(({"num_workers": 0}, *EPOCHS), idle=str(idle))
    assert [float(rows[name]["value"]) for name in ("S5.6.2-01", "S5.6-02")] == [7.6, 3.0]
