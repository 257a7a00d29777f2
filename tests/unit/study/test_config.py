"""What configuration files may hold; each refusal is two lines: where and what, what is allowed."""

import pytest

from epochwatt.columns import FLAG_EFFECTS
from epochwatt.errors import ConfigError
from epochwatt.study.settings import load_settings


def test_misspelt_key_shows_its_place_its_value_and_the_keys_there_are(checkout, refused):
    checkout.edit("studies.yaml", "batch_size:", "batchsize:")
    found, allowed = refused()
    assert found == (
        "config/studies.yaml: unknown key 'batchsize' in small.sweep[0] (value [16, 32])"
    )
    assert allowed.startswith("  allowed: device, instance, model, ")
    assert "batch_size" in allowed


def test_missing_key_is_described(checkout, refused):
    checkout.edit("studies.yaml", "  epochs: 3\n", "")
    found, allowed = refused()
    assert found == "config/studies.yaml: key 'small.epochs' is missing"
    assert "epochs of each run" in allowed


@pytest.mark.parametrize(
    ("factor", "value", "allowed"),
    [
        ("num_workers", -1, "a number >= 0"),
        ("num_workers", "2", "a whole number"),
        ("num_workers", 1.5, "a whole number"),
        ("dataset_scale", "1e9", "a number, such as 0.5; YAML takes 1e9 for text"),
        ("dataset_scale", 0, "a number > 0"),
        ("dataset_scale", float("inf"), "a finite number"),
        ("cache_policy", "flushed", "'kept' or 'dropped'"),
        ("dvfs", "off", "on"),  # the device cannot pin its clocks
        ("power_mode", "maxn", "asis, low"),
        ("storage", "nvme", "disk, flash"),
        ("model", "resnet18", "lenet"),
    ],
)
def test_value_that_no_run_can_have_is_refused(factor, value, allowed, checkout, refused):
    checkout.sweep({factor: value})
    found, told = refused()
    assert found == f"config/studies.yaml: small.sweep[0].{factor} is {value!r}"
    assert told.startswith(f"  allowed: {allowed}")


@pytest.mark.parametrize(
    ("file", "old", "new", "found", "allowed"),
    [
        ("studies.yaml", "epochs: 3", "epochs: 0", "small.epochs is 0", "a number >= 1"),
        ("studies.yaml", "device: host", "device: agx", "small.device is 'agx'", "allowed: host"),
        ("studies.yaml", "backend: host", "backend: gpu", "small.backend is 'gpu'", "'host'"),
        ("plotting.yaml", "[small]", "[big]", "names 'big'", "allowed: small"),
        ("plotting.yaml", "fig02a:", "fig03a:", "panels.fig03a", "fig02, fig02a, fig02b"),
        ("plotting.yaml", "[small]", "[small]\n    where: {w: [1]}", "where.w", "num_workers"),
        ("flags.yaml", "{}", "resumed: {effect: warns}", ".effect is 'warns'", "'invalidates'"),
        ("flags.yaml", "{}", "lost: {effect: informs}", "'lost'", "cold_process, imported, no_"),
        ("devices/host.yaml", "disk:", "my_disk:", "'my_disk'", "letters, digits and dots"),
        ("exclusions.yaml", "[]", "{a: 1}", "holds no list", "where and reason"),
        ("workloads.yaml", "7188", "0", "guess_samples_per_s is 0", "a number > 0"),
        ("config.yaml", "[small]", "\n  - [a", "config.yaml, line", ""),
        ("devices/host.yaml", "asis: {}", "asis: [", "devices/host.yaml, line", ""),
        ("studies.yaml", "epochs: 3", "epochs: 3\n  epochs: 4", "studies.yaml, line 6: ", ""),
    ],
)
def test_value_of_a_file_is_refused_with_what_is_allowed(
    file, old, new, found, allowed, checkout, refused
):
    checkout.edit(file, old, new)
    first, second = refused()
    assert f"config/{file}" in first
    assert found in first
    assert allowed in second


@pytest.mark.parametrize(
    "text", [None, "{}", "resumed: {effect: informs}", "stopped: {effect: informs}"]
)
def test_flags_have_their_effects_but_for_those_that_are_given(checkout, text):
    path = checkout.path / "config/flags.yaml"
    path.unlink() if text is None else path.write_text(text, "utf-8")
    given = {"stopped": "informs"} if "stopped" in (text or "") else {}
    assert load_settings(root=checkout.path).flag_effects == FLAG_EFFECTS | given


@pytest.mark.parametrize(
    ("keys", "found", "allowed"),
    [
        ({"board": "tx2"}, "board is 'tx2'", "'agx_xavier'"),
        ({"settle": {"max_s": 9, "power": 1}}, "key 'settle.power'", "max_s, window_s, temp_c, po"),
        ({"settle": {}}, "key 'settle.max_s' is missing", "time limit"),
        ({"power_modes": {"g": {"cores": 0}}}, "power_modes.g.cores is 0", "a number >= 1"),
        ({"power_modes": {"g_1": {"cores": 8}}}, "has a name 'g_1'", "letters, digits and dots"),
        ({"backends": ["fake"]}, "backends.0 is 'fake'", "'host', 'jetson' or 'twin'"),
        ({"constraint": "agx|nano"}, "constraint is 'agx|nano'", "^(\\w"),
        (
            {"power_modes": {"g": {"nvpmodel": "MAXN", "cores": 4}}},
            *("power_modes.g is ", "either the name of an nvpmodel mode or numbers, not both"),
        ),
    ],
)
def test_device_of_a_board_is_refused_with_what_is_allowed(keys, found, allowed, agx, refused):
    agx.set_device(**keys)
    first, second = refused()
    assert first.startswith("config/devices/agx.yaml")
    assert found in first
    assert allowed in second


@pytest.mark.parametrize("title", ["a</script><script>x//", "<b>x", "x <!-- y", "< /script>"])
def test_title_that_would_run_in_the_report_is_refused(checkout, title):
    checkout.sweep({"batch_size": 16}, title=title)
    with pytest.raises(ConfigError, match=r"title is .*\n  allowed: no markup"):
        checkout.settings()
