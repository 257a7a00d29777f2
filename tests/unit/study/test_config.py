"""What configuration files may hold; each refusal is two lines: where and what, what is allowed."""

from typing import ClassVar

import pytest

from epochwatt.columns import FLAG_EFFECTS
from epochwatt.errors import ConfigError
from epochwatt.study.config import PowerMode
from epochwatt.study.settings import load_settings
from epochwatt.study.yaml_files import read_yaml


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


# a mode of nvpmodel whose numbers are stated, for the models
NAMED = {"nvpmodel": "10W", "cores": 2, "cpu_mhz": 1200.0, "gpu_mhz": 520.0, "emc_mhz": 1065.0}


class TestValueOfASweep:
    """A value that no run can have."""

    CASES: ClassVar = [
        ("num_workers", -1, "a number >= 0"),
        ("num_workers", "2", "a whole number"),
        ("num_workers", 1.5, "a whole number"),
        ("batch_size", 0, "a number >= 1"),
        ("dataset_scale", "1e9", "a number, such as 0.5; YAML takes 1e9 for text"),
        ("dataset_scale", 0, "a number > 0"),
        ("cache_policy", "flushed", "'kept' or 'dropped'"),
        ("dvfs", "maybe", "'on' or 'off'"),
        ("dvfs", "off", "on"),  # the device cannot pin its clocks
        ("power_mode", "maxn", "asis, low"),
        ("storage", "nvme", "disk, flash"),
        ("instance", "third", "local, second"),
        ("model", "resnet18", "lenet"),
    ]

    @pytest.mark.parametrize(("factor", "value", "allowed"), CASES)
    def test_is_refused_with_what_is_allowed(self, factor, value, allowed, checkout, refused):
        checkout.sweep({factor: value})
        found, told = refused()
        assert found == f"config/studies.yaml: small.sweep[0].{factor} is {value!r}"
        assert told.startswith(f"  allowed: {allowed}")

    @pytest.mark.parametrize("value", [float("inf"), float("nan")])
    def test_that_is_not_finite_is_refused(self, value, checkout, refused):
        checkout.sweep({"dataset_scale": value})
        assert f"dataset_scale is {value!r}" in refused()[0]

    def test_of_an_unknown_source_names_those_there_are(self, checkout, refused):
        checkout.sweep({"dataset_source": "paper"})
        found, allowed = refused()
        assert "small.sweep[0].dataset_source" in found
        assert "'paper'" in found
        assert "mnist from digits" in allowed


class TestValueOfAFile:
    """Values outside the sweeps."""

    CASES: ClassVar = [
        ("studies.yaml", "epochs: 3", "epochs: 0", "small.epochs is 0", "a number >= 1"),
        ("studies.yaml", "device: host", "device: agx", "small.device is 'agx'", "allowed: host"),
        ("studies.yaml", "backend: host", "backend: gpu", "small.backend is 'gpu'", "'host'"),
        ("studies.yaml", "epochs: 3", "epochs: 1000000000", "epochs is 10", "a number <= 100000"),
        ("plotting.yaml", "[small]", "[big]", "names 'big'", "allowed: small"),
        ("plotting.yaml", "width_in: 5.0", "width_in: 0", "fig02a.width_in is 0", "a number > 0"),
        ("plotting.yaml", "fig02a:", "fig03a:", "panels.fig03a", "fig02, fig02a, fig02b"),
        (
            "plotting.yaml",
            "[small]",
            "[small]\n    where: {w: [1]}",
            "fig02.where.w",
            "num_workers",
        ),
        ("flags.yaml", "{}", "resumed: {effect: warns}", ".effect is 'warns'", "'invalidates'"),
        ("flags.yaml", "{}", "lost: {effect: informs}", "'lost'", "cold_process, imported, no_"),
        ("devices/host.yaml", "disk:", "my_disk:", "'my_disk'", "letters, digits and dots"),
        ("devices/host.yaml", '["on"]', "[sometimes]", "'sometimes'", "'on' or 'off'"),
        ("exclusions.yaml", "[]", "{a: 1}", "holds no list", "where and reason"),
        ("workloads.yaml", "7188", "0", "guess_samples_per_s is 0", "a number > 0"),
    ]

    @pytest.mark.parametrize(("file", "old", "new", "found", "allowed"), CASES)
    def test_is_refused_with_what_is_allowed(
        self, file, old, new, found, allowed, checkout, refused
    ):
        checkout.edit(file, old, new)
        first, second = refused()
        assert first.startswith(f"config/{file}")
        assert found in first
        assert allowed in second

    @pytest.mark.parametrize(
        "text", [None, "{}", "resumed: {effect: informs}", "stopped: {effect: informs}"]
    )
    def test_flags_have_their_effects_but_for_those_that_are_given(self, checkout, text):
        path = checkout.path / "config/flags.yaml"
        path.unlink() if text is None else path.write_text(text, "utf-8")
        given = {"stopped": "informs"} if "stopped" in (text or "") else {}
        assert load_settings(root=checkout.path).flag_effects == FLAG_EFFECTS | given


class TestDeviceOfABoard:
    """What a device's file says about a board."""

    CASES: ClassVar = [
        ({"board": "tx2"}, "board is 'tx2'", "'agx_xavier'"),
        ({"settle": {"max_s": 0}}, "settle.max_s is 0", "a number > 0"),
        ({"settle": {"max_s": 9, "power": 1}}, "key 'settle.power'", "max_s, window_s, temp_c, po"),
        ({"settle": {}}, "key 'settle.max_s' is missing", "time limit"),
        ({"power_modes": {"g": {"cores": 0}}}, "power_modes.g.cores is 0", "a number >= 1"),
        ({"power_modes": {"g": {"cores": "8"}}}, "power_modes.g.cores is '8'", "a whole number"),
        ({"power_modes": {"g_1": {"cores": 8}}}, "has a name 'g_1'", "letters, digits and dots"),
        ({"backends": ["fake"]}, "backends.0 is 'fake'", "'host', 'jetson' or 'twin'"),
        ({"constraint": "agx|nano"}, "constraint is 'agx|nano'", "^(\\w"),
        ({"remote": "maybe"}, "remote is 'maybe'", "a valid boolean"),
    ]

    @pytest.mark.parametrize(("keys", "found", "allowed"), CASES)
    def test_is_refused_with_what_is_allowed(self, keys, found, allowed, agx, refused):
        agx.set_device(**keys)
        first, second = refused()
        assert first.startswith("config/devices/agx.yaml")
        assert found in first
        assert allowed in second

    @pytest.mark.parametrize("number", [{"cores": 4}, {"gpu_mhz": 900}, {"cpu_mhz": 1, "cores": 1}])
    def test_a_mode_is_a_name_or_numbers_not_both(self, number, agx, refused):
        agx.set_device(power_modes={"g": {"nvpmodel": "MAXN", **number}})
        first, second = refused()
        assert first.startswith("config/devices/agx.yaml: power_modes.g is ")
        assert "either the name of an nvpmodel mode or numbers, not both" in second

    @pytest.mark.parametrize(
        "mode", [{"nvpmodel": "MAXN"}, {"cores": 4}, {}, NAMED, NAMED | {"gpu_share": 0.5}]
    )
    def test_a_mode_of_one_way_is_kept_as_it_is(self, mode):
        assert PowerMode.model_validate(mode).model_dump(exclude_none=True) == mode


class TestFileItself:
    """What is wrong before any schema is asked."""

    FILES: ClassVar = ["config.yaml", "studies.yaml", "devices/host.yaml", "plotting.yaml"]

    @pytest.mark.parametrize("file", FILES)
    def test_that_is_not_yaml_is_named_with_the_line(self, file, checkout, refused):
        checkout.write(file, "small:\n  epochs: [3\n  device: host\n")
        found, _ = refused()
        assert f"config/{file}, line 3: not valid YAML" in found

    def test_with_a_key_twice_names_it(self, checkout, refused):
        checkout.edit("studies.yaml", "  epochs: 3\n", "  epochs: 3\n  epochs: 4\n")
        found, why = refused()
        assert "config/studies.yaml, line 6: " in found
        assert "'epochs' stands twice" in found + why


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "On", "OFF", "true", "false"])
def test_switches_of_yaml_stay_words(word, tmp_path):
    (tmp_path / "a.yaml").write_text(f"dvfs: {word}\n{word}: 1\n", "utf-8")
    assert read_yaml(tmp_path / "a.yaml") == {"dvfs": word, word: 1}


@pytest.mark.parametrize("title", ["a</script><script>x//", "<b>x", "x <!-- y", "< /script>"])
def test_title_that_would_run_in_the_report_is_refused(checkout, title):
    checkout.sweep({"batch_size": 16}, title=title)
    with pytest.raises(ConfigError, match=r"title is .*\n  allowed: no markup"):
        checkout.settings()
