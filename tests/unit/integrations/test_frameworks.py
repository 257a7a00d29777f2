"""The callbacks in the frameworks themselves: planted times, and the same training as without."""

import functools
import time

import pytest
import torch

from benchmarks.synthetic import sampler_with
from epochwatt import EpochMonitor
from epochwatt.board.telemetry.client import Sampler

POWER = {"period_s": 0.01, "signal": [[0.004, 8.0], [0.007, 22.0]]}
N, WAIT_S, STEP_S, CHECK_S = 12, 0.004, 0.006, 0.02


class Data(torch.utils.data.Dataset):
    """Samples that take their time."""

    def __init__(self):
        draw = torch.Generator().manual_seed(0)
        self.x, self.y = torch.randn(N, 4, generator=draw), torch.arange(N) % 2

    def __len__(self):
        return N

    def __getitem__(self, index):
        time.sleep(WAIT_S)
        return {"x": self.x[index], "labels": self.y[index]}


class Network(torch.nn.Module):
    """A network whose forward pass takes its time."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x, labels=None):
        time.sleep(STEP_S if self.training else CHECK_S)
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


@pytest.fixture
def watch(tmp_path, monkeypatch):
    monkeypatch.setattr(
        Sampler, "start", functools.partial(Sampler.start, program=sampler_with(POWER))
    )
    with EpochMonitor("framework", folder=str(tmp_path / "measured")) as monitor:
        yield monitor


def check(seen, n_within):
    """Check two epochs within which so many samples were validated: that is overhead."""
    assert [epoch.n_minibatches for epoch in seen] == [N, N]
    for epoch in seen:
        assert epoch.wait_s >= N * WAIT_S
        assert epoch.compute_s >= N * STEP_S
        assert epoch.overhead_s >= n_within * CHECK_S
        assert epoch.energy_wh > 0
        assert "left_early" not in epoch.flags


def lightning_weights(folder, callbacks, **options):
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = Network()

        def training_step(self, batch, _):
            return self.network(**batch)["loss"]

        def validation_step(self, batch, _):
            self.network(**batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module, loader = Module(), torch.utils.data.DataLoader(Data())
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        callbacks=callbacks,
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        num_sanity_val_steps=0,
        logger=False,
        **options,
    )
    trainer.fit(module, loader, loader)
    return module.network.layer.weight.tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("options", "n_within"), [({}, 0), ({"val_check_interval": N // 2}, N)])
def test_lightning(watch, tmp_path, options, n_within):
    pytest.importorskip("lightning.pytorch")
    from epochwatt.integrations.lightning import EpochwattCallback

    seen = []
    watch._log_to = [seen.append]
    weights = lightning_weights(tmp_path, [EpochwattCallback(watch)], **options)
    check(seen, n_within)
    assert weights == lightning_weights(tmp_path, [], **options)


def huggingface_weights(folder, callbacks):
    transformers = pytest.importorskip("transformers")
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=2,
        per_device_train_batch_size=1,
        per_device_eval_batch_size=1,
        learning_rate=0.1,
        eval_strategy="steps",
        eval_steps=N // 2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=1,
    )
    network, data = Network(), Data()
    trainer = transformers.Trainer(
        network, arguments, train_dataset=data, eval_dataset=data, callbacks=callbacks
    )
    trainer.train()
    return network.layer.weight.tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_hugging_face(watch, tmp_path):
    pytest.importorskip("accelerate")
    from epochwatt.integrations.huggingface import EpochwattCallback

    seen = []
    watch._log_to = [seen.append]
    weights = huggingface_weights(tmp_path, [EpochwattCallback(watch)])
    check(seen, 2 * N)
    assert weights == huggingface_weights(tmp_path, [])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lightning_that_is_left_early_says_so(watch, tmp_path):
    pytest.importorskip("lightning.pytorch")
    from epochwatt.integrations.lightning import EpochwattCallback

    seen = []
    watch._log_to = [seen.append]
    lightning_weights(tmp_path, [EpochwattCallback(watch)], max_steps=N + 5)
    assert [epoch.n_minibatches for epoch in seen] == [N, 5]
    assert ["left_early" in epoch.flags for epoch in seen] == [False, True]
