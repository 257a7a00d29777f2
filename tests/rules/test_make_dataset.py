"""Rule make_dataset: from a recipe to files that the training reads."""

from epochwatt.board.training.data import open_dataset


def test_data_set_can_be_opened_by_the_training(checkout, run_rule):
    checkout.sweep({"dataset_scale": 0.01})
    (run,) = checkout.runs
    run_rule("make_dataset", f"{run.data_folder}/manifest.json")
    reader, manifest = open_dataset("data", run.factors)
    assert (len(reader), manifest["n_samples"]) == (18, 18)
    assert [reader.read(i)[1] for i in range(10)] == list(range(10))
