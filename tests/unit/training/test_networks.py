"""The four networks are those of the papers, and each trains from every format it is fed from."""

import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from epochwatt.columns import with_defaults
from epochwatt.datasets import recipes
from epochwatt.datasets.make import make_dataset
from epochwatt.errors import ConfigError
from epochwatt.records.dataset_folder import folder_name
from epochwatt.training import networks, transforms
from epochwatt.training.data import open_dataset
from epochwatt.training.loaders import TimedMinibatches, make_loader
from epochwatt.training.session import MadeUpSamples, Session
from epochwatt.training.workloads import WORKLOADS, Trainer, workload_of

CPU = torch.device("cpu")
INPUTS = {
    "lenet": (1, 28, 28),
    "mobilenet": (3, 224, 224),
    "resnet": (3, 32, 32),
    "vgg11": (3, 32, 32),
}


@pytest.fixture(autouse=True)
def one_thread():
    """Results and times that do not depend on who else uses the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def on_meta(build):
    """Build a network without memory behind its weights: it only has shapes."""
    with torch.device("meta"):
        return build()


def n_parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


def n_multiply_adds(network, shape):
    with FlopCounterMode(display=False) as counter:
        network(torch.empty(1, *shape, device="meta"))
    return counter.get_total_flops() // 2


def outputs_of(network, shape, kinds):
    """Return the number of values that the modules of some kinds give for one input."""
    sizes = []
    for module in network.modules():
        if isinstance(module, kinds) and module is not network:
            module.register_forward_hook(lambda m, i, outputs: sizes.append(outputs.numel()))
    network(torch.empty(1, *shape, device="meta"))
    return sum(sizes)


def thousand_classes():
    from torchvision.models import mobilenet_v3_large

    return mobilenet_v3_large(num_classes=1000)


# -- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("lenet", 61_706),
        ("mobilenet", 4_462_075),
        ("resnet", 11_173_962),
        ("vgg11", 132_863_336),  # Table 2: 132.86 M
    ],
)
def test_number_of_parameters(model, expected):
    assert n_parameters(on_meta(WORKLOADS[model].build)) == expected


def test_mobilenet_of_table_2_has_a_thousand_classes():
    assert n_parameters(on_meta(thousand_classes)) == 5_483_032  # 5.48 M


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("lenet", 416_520),  # 0.42 M; the 4.4 M of Table 2 belong to a larger LeNet
        ("mobilenet", 215_569_600),
        ("resnet", 555_422_720),  # 0.56 G; Table 2 has those of 224x224
        ("vgg11", 276_398_080),  # at 32x32; Table 2 has those of 224x224
    ],
)
def test_multiply_adds_of_convolutions_and_dense_layers(model, expected):
    assert n_multiply_adds(on_meta(WORKLOADS[model].build), INPUTS[model]) == expected


def test_table_2_counts_two_more_operations_for_each_normalised_value_of_mobilenet():
    shape = INPUTS["mobilenet"]
    normalised = outputs_of(on_meta(thousand_classes), shape, nn.BatchNorm2d)
    total = n_multiply_adds(on_meta(thousand_classes), shape) + 2 * normalised
    assert total == pytest.approx(225.4e6, abs=0.05e6)


@pytest.mark.parametrize(("model", "expected"), [("resnet", 53.89), ("vgg11", 509.78)])
def test_memory_of_table_2_by_the_rules_of_its_summary_tool(model, expected):
    """Input, weights, and twice what every module gives (forward, backward), in MiB of float32."""
    network = on_meta(WORKLOADS[model].build)
    given = {type(m) for m in network.modules()} - {nn.Sequential, type(network)}
    values = 2 * outputs_of(network, INPUTS[model], tuple(given))
    values += n_parameters(network) + math.prod(INPUTS[model])
    assert values * 4 / 2**20 == pytest.approx(expected, abs=0.005)


# -- structure -----------------------------------------------------------------------------------


def test_resnet_is_the_variant_for_small_pictures():
    network = on_meta(networks.CifarResNet18)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert (convolutions[0].kernel_size, convolutions[0].stride) == ((3, 3), (1, 1))
    assert not [m for m in network.modules() if isinstance(m, nn.MaxPool2d | nn.BatchNorm2d)]
    outer = [m for m in convolutions if m.kernel_size == (3, 3) and m.in_channels != 3]
    strides = [m.stride[0] for m in outer]
    assert strides == [1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1]
    assert [m.out_channels for m in outer] == [64] * 4 + [128] * 4 + [256] * 4 + [512] * 4
    assert len(convolutions) == 17 + 3  # 17 and the dense layer are the 18; three shortcuts


def test_resnet_normalises_each_channel_of_each_picture_by_itself():
    norms = [m for m in on_meta(networks.CifarResNet18).modules() if isinstance(m, nn.GroupNorm)]
    assert len(norms) == 20
    assert all(m.num_groups == m.num_channels and m.affine for m in norms)


def test_mobilenet_begins_with_convolutions_drawn_as_xavier_says():
    torch.manual_seed(0)
    for module in networks.mobilenet_v3().modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() > 10_000:
            fan = nn.init._calculate_fan_in_and_fan_out(module.weight)
            limit = math.sqrt(6 / sum(fan))
            assert 0.99 * limit < module.weight.abs().max().item() <= limit
            assert module.weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize("model", ["lenet", "resnet"])
def test_networks_of_our_own_import_no_torchvision(model, python):
    code = f"""
import sys
from epochwatt.training import session, workloads
workload = workloads.WORKLOADS[{model!r}]
workload.build()
workload.transform(workload.made_up())
print(sorted(name for name in ("torchvision", "PIL") if name in sys.modules))
"""
    assert python(code) == "[]\n"


def test_transform_of_photographs_imports_no_torchvision_in_a_worker(python):
    code = """
import sys
from epochwatt.training.workloads import WORKLOADS
workload = WORKLOADS["mobilenet"]
workload.transform(workload.made_up())
print("torchvision" in sys.modules)
"""
    assert python(code) == "False\n"


# -- transforms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(800, 600), (600, 800), (230, 90), (1500, 60), (60, 1500)])
def test_augmentation_is_torchvisions_to_the_bit(size):
    from torchvision import transforms as theirs

    half = (0.5, 0.5, 0.5)
    before_cutout = theirs.Compose(
        [
            theirs.RandomResizedCrop(224),
            theirs.RandomHorizontalFlip(),
            theirs.ToTensor(),
            theirs.Normalize(half, half),
        ]
    )
    image = transforms.made_up_landmark().resize(size)
    for seed in range(8):
        torch.manual_seed(seed)
        ours = transforms.augment_landmark(image)
        torch.manual_seed(seed)
        expected = before_cutout(image)
        kept = ours != 0
        assert torch.equal(ours[kept], expected[kept])
        assert 64 <= (~kept).all(dim=0).sum() <= 256  # a corner or the whole of 16x16


def test_cutout_takes_a_square_of_16_pixels_and_less_at_the_border():
    torch.manual_seed(0)
    sizes = set()
    for _ in range(300):
        zero = transforms.cut_out(torch.ones(3, 40, 48))[0] == 0
        rows, columns = zero.any(dim=1).sum().item(), zero.any(dim=0).sum().item()
        assert zero.sum() == rows * columns
        sizes.add((rows, columns))
    assert max(sizes) == (16, 16)
    assert min(min(size) for size in sizes) == 8


def test_cifar_is_normalised_as_torchvision_does():
    from PIL import Image
    from torchvision import transforms as theirs

    raw = transforms.made_up_cifar10()
    before = raw.copy()
    mean, std = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    tensor = theirs.ToTensor()(Image.fromarray(raw.transpose(1, 2, 0)))
    expected = theirs.Normalize(mean, std)(tensor)
    assert torch.equal(transforms.normalise_cifar10(raw), expected)
    np.testing.assert_array_equal(raw, before)


# -- training ------------------------------------------------------------------------------------

SCALES = {  # of a dozen samples
    ("mnist", "digits"): 0.007,
    ("mnist", "synthetic"): 0.0002,
    ("cifar10", "synthetic"): 0.00024,
    ("gld23k", "synthetic"): 0.0005,
}
FED = [
    ("lenet", "mnist", "digits"),
    ("lenet", "mnist", "synthetic"),
    ("mobilenet", "gld23k", "synthetic"),
    ("resnet", "cifar10", "synthetic"),
    ("vgg11", "cifar10", "synthetic"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make data sets, once each; a function that returns root and factors of one."""
    root = tmp_path_factory.mktemp("sets")

    def make(dataset, source):
        scale = SCALES[dataset, source]
        recipe = recipes.recipe(dataset, source, scale)
        folder = root / folder_name(dataset, source, scale)
        if not folder.exists():
            make_dataset(folder, recipe)
        named = {"dataset": dataset, "dataset_source": source, "dataset_scale": scale}
        return str(root), {**named, "recipe": recipe}

    return make


def trained_on(workload, trainer, source, num_workers):
    """Train one pass in two mini-batches; return the losses."""
    factors = {"batch_size": math.ceil(len(source) / 2), "num_workers": num_workers}
    minibatches = TimedMinibatches(source, workload.transform, num_workers)
    generator = torch.Generator().manual_seed(1)
    loader = make_loader(minibatches, len(source), {**factors, "prefetch_factor": 2}, generator)
    return [trainer.step(trainer.copy(minibatch)).item() for minibatch in loader]


@pytest.mark.parametrize(("model", "dataset", "source"), FED)
def test_network_trains_on_two_minibatches_of_its_data_set(made, model, dataset, source):
    root, named = made(dataset, source)
    reader, _ = open_dataset(root, named)
    trainer = Trainer(WORKLOADS[model], CPU, seed=0)
    first, *_, last = trainer.network.parameters()
    before = first.clone(), last.clone()
    losses = trained_on(WORKLOADS[model], trainer, reader, num_workers=1)
    assert len(losses) == 2
    assert np.isfinite(losses).all()
    assert not torch.equal(before[0], first)
    assert not torch.equal(before[1], last)


def test_workers_augment_as_their_seed_says_and_differently_each(made):
    root, named = made("gld23k", "synthetic")
    reader, _ = open_dataset(root, named)
    minibatches = TimedMinibatches(reader, WORKLOADS["mobilenet"].transform, 2)
    factors = {"batch_size": 3, "num_workers": 2, "prefetch_factor": 2}

    def epoch(seed):
        generator = torch.Generator().manual_seed(seed)
        return [inputs for inputs, _ in make_loader(minibatches, len(reader), factors, generator)]

    first, again, other = epoch(1), epoch(1), epoch(2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    ("model", "n_steps"), [("lenet", 20), ("mobilenet", 8), ("resnet", 3), ("vgg11", 4)]
)
def test_loss_falls_on_a_minibatch_that_is_shown_again(model, n_steps):
    trainer = Trainer(WORKLOADS[model], CPU, seed=0)
    if model == "vgg11":
        trainer.network.eval()  # without dropout, with which it would take many steps
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(4, *INPUTS[model], generator=generator)
    minibatch = inputs, torch.tensor([0, 1, 2, 3])
    losses = [trainer.step(minibatch).item() for _ in range(n_steps)]
    assert losses[-1] < 0.95 * losses[0]


@pytest.mark.parametrize(
    "raw",
    [7, b"bytes", (1, 2), {"a": 1}, torch.ones(2, 3), np.ones(4), Image.new("L", (2, 2))],
    ids=lambda raw: type(raw).__name__,
)
def test_made_up_sample_of_an_own_network_may_be_of_any_type(raw):
    """It went through epoch 0, which has no warm-up, and ended epoch 1 with an AttributeError."""
    samples = MadeUpSamples(raw, 2)
    first, label = samples.read(0)
    assert (type(first), label) == (type(raw), 0)
    assert np.all(np.asarray(first) == np.asarray(raw))


def test_a_transform_that_changes_its_sample_spoils_no_later_one():
    samples = MadeUpSamples([1.0, [2.0]], 2)
    samples.read(0)[0][1].append("spoilt")
    assert samples.read(1)[0] == [1.0, [2.0]]


@pytest.mark.parametrize("model", list(INPUTS))
def test_made_up_sample_has_the_form_of_a_real_one(made, model):
    _, dataset, source = next(row for row in FED if row[0] == model)
    root, named = made(dataset, source)
    real, _ = open_dataset(root, named)[0].read(0)
    made_up, label = MadeUpSamples(WORKLOADS[model].made_up(), 3).read(2)
    assert isinstance(real, type(made_up))
    assert (np.shape(made_up), label) == (np.shape(real), 0)
    assert WORKLOADS[model].transform(made_up).shape == INPUTS[model]


def test_warm_up_of_the_mobilenet_reads_no_data(made, folder, machine, monkeypatch):
    root, named = made("gld23k", "synthetic")
    place = {"backend": "host", "device": "host", "instance": "local", "storage": "ssd"}
    rest = {"power_mode": "asis", "torch_threads": 1, "num_workers": 1, "batch_size": 2}
    factors = with_defaults({**place, **rest, **named, "model": "mobilenet"})
    monkeypatch.setattr("epochwatt.training.session.WARMUP_MINIBATCHES", 1)
    with Session(folder, factors, root, machine, {}) as session:
        monkeypatch.setattr(session.source, "read", None)
        session._warm_up()
        assert session.warmup_s > 0


# -- own networks --------------------------------------------------------------------------------


def one_weight():
    """An own network; its second weight is never used, hence never gets a gradient."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    network.register_parameter("unused", nn.Parameter(torch.ones(1)))
    return network


def as_floats(raw):
    return torch.from_numpy(raw).float().unsqueeze(0)


def own(**row):
    return {"model": "mine", "network": {"build": f"{__name__}.one_weight", "like": "lenet", **row}}


def test_own_network_takes_the_input_of_the_one_it_is_like():
    workload = workload_of(own())
    assert workload == WORKLOADS["lenet"]._replace(build=one_weight)
    trainer = Trainer(workload, CPU, seed=0)
    minibatch = torch.ones(2, 1, 28, 28), torch.tensor([0, 1])
    losses = [trainer.step(minibatch).item() for _ in range(3)]
    assert losses[2] < losses[0]
    assert trainer.network.unused.item() == 1.0


def test_own_network_may_have_a_transform_of_its_own():
    assert workload_of(own(transform=f"{__name__}.as_floats")).transform is as_floats


def twice(network, inputs, labels):
    return 2 * nn.functional.cross_entropy(network(inputs), labels)


def test_own_network_may_have_a_loss_of_its_own():
    minibatch = torch.ones(2, 1, 28, 28), torch.tensor([0, 1])
    plain_and_own = [workload_of(own(**row)) for row in ({}, {"loss": f"{__name__}.twice"})]
    losses = [Trainer(workload, CPU, seed=0).step(minibatch).item() for workload in plain_and_own]
    assert losses[1] == pytest.approx(2 * losses[0])


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"build": "no_such_module.f"}, "mine.build: 'no_such_module.f' cannot be imported"),
        ({"build": f"{__name__}.no_such"}, "has no no_such"),
        ({"build": "one_weight"}, "has no module before its last dot"),
        ({"like": "mine"}, "mine.like is 'mine'\n  allowed: lenet, mobilenet, resnet, vgg11"),
        ({"transform": "math.none"}, "mine.transform: 'math.none' is not there"),
    ],
)
def test_own_network_that_is_not_there_is_told_in_two_lines(row, told):
    with pytest.raises(ConfigError) as error:
        workload_of(own(**row))
    assert told in str(error.value)
    assert len(str(error.value).split("\n")) == 2
    assert "mine" not in WORKLOADS


def test_model_without_a_network_names_those_there_are():
    with pytest.raises(ConfigError, match="is 'alexnet'\n  allowed: lenet, mobilenet"):
        workload_of({"model": "alexnet"})
