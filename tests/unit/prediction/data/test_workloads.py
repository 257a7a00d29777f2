"""Runs become workloads, workloads become groupes."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.data.workloads import board_groups, read_workloads


def test_runs_that_differ_in_the_power_mode_only_are_one_workload(planted):
    lenet, mobilenet = read_workloads(*planted(("lenet", "mobilenet"), "ab"))
    assert (lenet.name, lenet.runs) == ("lenet", ("lenet-a", "lenet-b"))
    assert lenet.modes == {"a": Mode(8, 1000, 500, 1000), "b": Mode(8, 2000, 500, 1000)}
    assert "power_mode" not in lenet.factors
    assert (lenet.factors["num_workers"], lenet.factors["dataset_scale"]) == (4, 1.0)
    assert lenet.observed.epoch.tolist() == [0, 1, 2, 3] * 2
    assert lenet.observed.time_s[:2].tolist() == pytest.approx([2 * 28, 28])  # 0.1 x 280 s
    assert mobilenet.modes == lenet.modes


def test_energy_is_that_of_the_table(planted):
    (lenet,) = read_workloads(*planted(("lenet",), "a"))
    expected_wh = 0.1 + 0.25 + 0.2 + 0.005 * 28 + 0.3
    assert lenet.observed.after_first().energy_wh == pytest.approx([expected_wh] * 3)
    assert np.isnan(lenet.observed.energy_wh[0])


def test_power_as_a_meter_has_it_stands_beside_the_papers_energy(planted, edit_rows):
    """The papers' sum at 1 Hz leaves out the end of an epoch."""
    paths, modes = planted(("lenet",), "a")
    edit_rows(paths[0], lambda row: row.update(energy_wh=row["energy_paper_wh"] and "1.25"))
    (lenet,) = read_workloads(paths, modes)
    later = lenet.metered.after_first()
    assert later.power_w == pytest.approx(3600 * 1.25 / later.time_s)
    assert later.time_s.tolist() == lenet.observed.after_first().time_s.tolist()
    assert lenet.observed.after_first().energy_wh == pytest.approx([0.99] * 3)


def test_energy_that_is_missing_or_of_several_scopes_says_so(planted, write_epochs, tmp_path):
    paths, modes = planted(("lenet",), "a", energy=False)
    (none,) = read_workloads(paths, modes)
    assert none.no_energy == "energy was not measured"
    factors = {**none.factors, "power_mode": "a"}
    epochs = [{"energy_paper_wh": 1.0, "power_scope": scope} for scope in ("module", "socket")]
    path = write_epochs("lenet-a", factors, *epochs, root=tmp_path)
    (both,) = read_workloads([path], modes)
    assert both.no_energy == "energy was measured by several power scopes: module, socket"
    assert np.isnan(both.observed.power_w).all()


@pytest.mark.parametrize(("epoch", "said"), [("2", "5 of 6"), ("0", "")])
def test_energy_that_is_missing_in_part_is_as_missing(planted, edit_rows, epoch, said):
    """An epoch after the first counts, the first does not."""
    paths, modes = planted(("lenet",), "ab")
    edit_rows(paths[1], without_energy(epoch))
    (lenet,) = read_workloads(paths, modes)
    expected = f"energy was measured in {said} epochs after the first" if said else ""
    assert lenet.no_energy == expected
    assert np.isnan(lenet.observed.after_first().power_w).all() == bool(said)


def without_energy(epoch):
    def change(row):
        if row["epoch"] == epoch:
            row |= {"energy_paper_wh": "", "power_scope": ""}

    return change


def test_epochs_that_are_not_valid_are_left_out(write_epochs, tmp_path, planted):
    paths, modes = planted(("lenet",), "a")
    (lenet,) = read_workloads(paths, modes)
    factors = {**lenet.factors, "power_mode": "a"}
    path = write_epochs("lenet-a", factors, {}, {"valid": False}, {}, root=tmp_path)
    (few,) = read_workloads([path], modes)
    assert few.observed.epoch.tolist() == [0, 2]


def test_a_board_group_holds_what_differs_in_the_network_only(planted):
    workloads = read_workloads(*planted(("lenet", "resnet"), "ab"))
    (group,) = board_groups(workloads)
    assert list(group.workloads) == ["lenet", "resnet"]
    assert {"model", "dataset", "power_mode"}.isdisjoint(group.factors)
    loaderless = replace(workloads[0], factors={**workloads[0].factors, "num_workers": 0})
    assert len(board_groups([*workloads, loaderless])) == 2
    other = replace(workloads[0], factors={**workloads[0].factors, "imported": "scripts-2023"})
    assert len(board_groups([*workloads, other])) == 2


def test_a_network_on_further_data_opens_a_further_board_group(planted, beside):
    def smaller(row):
        row |= {"dataset_source": "synthetic", "dataset_scale": "0.25"}

    every = beside(*planted(("lenet", "resnet"), "ab"), smaller, lambda run: "resnet" in run)
    first, second = board_groups(read_workloads(*every))
    assert {name: of.factors["dataset_source"] for name, of in first.workloads.items()} == {
        "lenet": "official",
        "resnet": "official",
    }
    assert [of.factors["dataset_scale"] for of in second.workloads.values()] == [0.25]
    assert first.factors == second.factors


def test_networks_on_data_of_their_own_share_a_group(planted):
    lenet = planted(("lenet",), "ab", dataset_source="bundled")
    resnet = planted(("resnet",), "ab", dataset_source="synthetic")
    (group,) = board_groups(read_workloads(lenet[0] + resnet[0], lenet[1] | resnet[1]))
    assert list(group.workloads) == ["lenet", "resnet"]
