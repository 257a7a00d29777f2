"""The table of board kinds: complete, consistent, and read by everything else."""

import re

import pytest

from epochwatt.board.device.board_files import conf_text, gpu_share, parse_conf, strongest
from epochwatt.board.device.kinds import KINDS, POWER_PARTS
from epochwatt.board.device.stock_modes import stock_conf

RELEASES = [(kind, release) for kind in KINDS.values() for release in kind.releases]
IDS = [f"{kind.name}-{release.l4t}" for kind, release in RELEASES]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_has_its_name_and_finds_only_itself(kind):
    assert KINDS[kind.name] is kind
    words = " ".join([*kind.compatible, kind.model]).lower()
    assert [k.name for k in KINDS.values() if re.search(k.pattern, words)] == [kind.name]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_rails_feed_known_parts_and_no_more_than_the_rail_above(kind):
    rails = {rail.label: rail for rail in kind.rails}
    for rail in kind.rails:
        assert set(rail.feeds) <= set(POWER_PARTS)
        if rail.parent is not None:
            above = rails[rail.parent].feeds
            assert all(share <= above.get(part, 0) for part, share in rail.feeds.items())


@pytest.mark.parametrize(("kind", "release"), RELEASES, ids=IDS)
def test_stock_modes_are_a_configuration_that_can_be_read(kind, release):
    conf = stock_conf(kind, release)
    assert parse_conf(conf.text) == conf
    assert conf_text(conf.params, conf.modes, conf.default_id) == conf.text
    assert conf.default_id in [mode.id for mode in conf.modes]
    assert strongest(conf).name
    assert all(mode.cores <= kind.cores for mode in release.modes)


def test_share_of_the_gpu_is_not_known_where_neither_parts_nor_mask_are():
    kind = KINDS["orin_nano"]
    conf = stock_conf(kind, kind.releases[0])
    bare = [
        mode._replace(settings=[s for s in mode.settings if s[1] != "TPC_PG_MASK"])
        for mode in conf.modes
    ]
    assert gpu_share(conf, conf.modes[1], kind.name) is None
    assert gpu_share(conf._replace(modes=bare), bare[1], kind.name) is None
    assert gpu_share(conf._replace(modes=bare), bare[1], "nano") == 1.0
