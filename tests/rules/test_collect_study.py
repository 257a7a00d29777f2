"""Rule collect_study: from epochs.csv of all runs to the two exports."""

INVALID = {"valid": False, "flags": {"fresh_weights"}, "e2e_s": 1000.0}


def test_exports_hold_all_epochs_and_their_statistics(
    checkout, write_epochs, run_rule, expected, assert_table
):
    checkout.sweep({"num_workers": [0, 2]})
    first, second = checkout.runs
    later = ({"wait_s": 2.0, "e2e_s": 5.0}, {"wait_s": 4.0, "e2e_s": 8.0})
    write_epochs(first.id, first.factors, {"flags": {"cold_process"}}, *later)
    write_epochs(second.id, second.factors, {}, INVALID)
    run_rule("collect_study", "results/tables/runs.csv")
    assert_table("results/tables/epochs.csv", expected("collect_study", "epochs.csv"))
    assert_table("results/tables/runs.csv", expected("collect_study", "runs.csv"))
