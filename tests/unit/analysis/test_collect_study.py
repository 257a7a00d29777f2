"""The common tables: epoch sets, statistics over valid epochs, exports."""

import pandas as pd
import pytest

from epochwatt import columns
from epochwatt.analysis.collect_study import export_tables, join_ranks, read_epochs, summarise_runs
from epochwatt.columns import ENERGY_COLUMNS, names
from epochwatt.errors import RecordError


@pytest.fixture
def run(checkout):
    return checkout.runs[0]


@pytest.fixture
def summarised(run, write_epochs):
    """Return a function that summarises one run's epochs; rows by (epoch set, statistic)."""

    def call(*epochs, **studies):
        path = write_epochs(run.id, run.factors, *epochs)
        table = summarise_runs(read_epochs([path]), {run.id: "small", **studies})
        return table.set_index(["epoch_set", "statistic"])

    return call


def test_empty_text_is_text_and_an_empty_number_is_missing(run, write_epochs):
    named = {**run.factors, "model": "NA", "instance": "null", "power_mode": "nan"}
    row = read_epochs([write_epochs(run.id, named, {"cold_process": None})]).iloc[0]
    assert (row["model"], row["instance"], row["power_mode"]) == ("NA", "null", "nan")
    assert (row["flags"], row["power_scope"]) == ("", "")
    assert row[["cold_process", "prefetch_factor", "energy_wh"]].isna().all()


def test_a_row_that_does_not_say_whether_it_is_valid_is_refused(run, write_epochs):
    with pytest.raises(RecordError, match="not a table of epochs"):
        read_epochs([write_epochs(run.id, run.factors, {"valid": None})])


def test_every_run_has_a_row_per_set_and_statistic(summarised, run):
    table = summarised({}, {}, {})
    assert list(table.index) == [
        (epoch_set, statistic)
        for epoch_set in ("0", "1+", "all")
        for statistic in ("mean", "median")
    ]
    assert set(table["run"]) == {run.id}
    assert set(table["batch_size"]) == {16}
    assert set(table["studies"]) == {"small"}
    assert table["energy_wh"].isna().all()


@pytest.mark.parametrize(
    ("epoch_set", "statistic", "e2e_s"),
    [
        ("0", "mean", 10.0),
        ("1+", "mean", 6.0),  # of 4, 5 and 9
        ("1+", "median", 5.0),
        ("all", "mean", 7.0),  # of 10, 4, 5 and 9
        ("all", "median", 7.0),
    ],
)
def test_statistics_are_of_their_set(epoch_set, statistic, e2e_s, summarised):
    table = summarised({"e2e_s": 10.0}, {"e2e_s": 4.0}, {"e2e_s": 5.0}, {"e2e_s": 9.0})
    assert table.loc[(epoch_set, statistic), "e2e_s"] == pytest.approx(e2e_s, rel=1e-12)


def test_invalid_epochs_are_left_out_and_counted(summarised):
    bad = {"e2e_s": 1000.0, "valid": False, "flags": {"fresh_weights"}}
    table = summarised({}, {"e2e_s": 5.0}, bad, {"e2e_s": 7.0})
    row = table.loc[("1+", "mean")]
    assert (row.e2e_s, row.n_epochs, row.n_invalid) == (pytest.approx(6.0), 2, 1)
    assert table.loc[("0", "mean"), "n_invalid"] == 0


@pytest.mark.parametrize(
    ("later", "n_invalid"), [([{"valid": False, "flags": {"warmup_skipped"}}], 1), ([], 0)]
)
def test_set_without_a_valid_epoch_keeps_its_row_without_values(later, n_invalid, summarised):
    row = summarised({}, *later).loc[("1+", "median")]
    assert (row.n_epochs, row.n_invalid) == (0, n_invalid)
    assert row["flags"] == ("warmup_skipped" if later else "")
    assert row[["e2e_s", "loss"]].isna().all()


def test_exports_have_a_row_per_epoch_and_per_set_and_statistic(checkout, write_epochs):
    runs = checkout.runs[:2]
    paths = [write_epochs(run.id, run.factors, {}, {"e2e_s": 5.0}) for run in runs]
    export_tables(paths, {run.id: "small other" for run in runs}, "epochs.csv", "runs.csv")
    epochs, sets = (
        pd.read_csv(name, dtype=str, keep_default_na=False) for name in ("epochs.csv", "runs.csv")
    )
    assert tuple(epochs.columns) == ("studies", *columns.names(columns.RUN_EPOCH_COLUMNS))
    assert list(epochs.epoch) == ["0", "1", "0", "1"]
    assert tuple(sets.columns) == columns.names(columns.RUNS_COLUMNS)
    assert len(sets) == 2 * 3 * 2
    assert list(sets.n_epochs[:6]) == ["1", "1", "1", "1", "2", "2"]
    for table in (epochs, sets):
        assert set(table.studies) == {"small other"}
        assert set(table.energy_wh) == set(table.prefetch_factor) == {""}
        assert set(table.batch_size) == {"16", "32"}
    epochs.drop(columns="studies").to_csv("back.csv", index=False)
    assert list(read_epochs(["back.csv"]).run.unique()) == checkout.ids[:2]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text.replace("True", "perhaps"),
        lambda text: text.replace("e2e_s", "e3e_s"),
        lambda text: text.replace(",host,", ",--,", 1),
        lambda text: text.replace(",host,", ",,", 1),
        lambda text: text[:-1] + ",more\n",
        lambda text: text.replace("\n", "\n\0"),
        lambda text: text.replace(",host,", ',"host,', 1),
    ],
)
def test_a_damaged_table_is_named_with_what_to_do(run, write_epochs, damage):
    path = write_epochs(run.id, run.factors, {})
    with open(path, encoding="utf-8") as handle:
        text = handle.read()
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(damage(text))
    whole = f"{path}-whole.csv"
    with open(whole, "w", encoding="utf-8") as handle:
        handle.write(text)
    for paths in ([path], [whole, path, whole]):
        with pytest.raises(RecordError, match=r"epochs\.csv is not a table of epochs: ") as caught:
            read_epochs(paths)
        assert caught.value.do.startswith("remove it")


def test_a_column_that_is_younger_than_the_table_is_missing_in_its_rows(run, write_epochs):
    path = write_epochs(run.id, run.factors, {})
    old = pd.read_csv(path, dtype=str, keep_default_na=False)
    old.drop(columns=["energy_wh", "energy_method", "n_samples"]).to_csv(path, index=False)
    (row,) = read_epochs([path]).to_dict("records")
    assert row["energy_method"] == ""
    assert pd.isna(row["energy_wh"])
    assert pd.isna(row["n_samples"])


# -- processes of one training on two machines: one row, energies summed

RANK_TIMES = ("e2e_s", "wait_s", "copy_s", "stall_s", "compute_s", "overhead_s")
RANK_NUMBERS = [c.name for c in ENERGY_COLUMNS if c.kind == "float"]


def rank_rows(*energies_of_machines):
    table = []
    for n, energy in enumerate(energies_of_machines):
        run = "t-1" if n == 0 else f"t-1.rank{n}"
        cells = {"run": run, "epoch": 0, "flags": "", "valid": True, "instance": f"m{n}"}
        table.append(
            {**cells, **dict.fromkeys(RANK_TIMES, 1.0), **dict.fromkeys(RANK_NUMBERS, energy)}
        )
    return pd.DataFrame(table)


def test_every_energy_is_a_sum_over_machines_and_its_bound_a_weighted_mean():
    (_, row) = next(join_ranks(rank_rows(1.0, 3.0)).iterrows())
    for name in ("energy_wh", "energy_paper_wh", "stall_energy_j", "power_mean_w"):
        assert name in names(ENERGY_COLUMNS)
        assert row[name] == 4.0
    for name in ("energy_error_pct", "stall_energy_error_pct"):
        assert row[name] == pytest.approx((1.0 * 1.0 + 3.0 * 3.0) / 4.0)


def test_without_stalls_or_with_an_unknown_energy_there_is_no_bound():
    assert join_ranks(rank_rows(0.0, 0.0)).stall_energy_error_pct.isna().all()
    assert join_ranks(rank_rows(1.0, float("nan"))).stall_energy_j.isna().all()
