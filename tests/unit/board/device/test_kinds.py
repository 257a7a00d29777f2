"""The table of board kinds: complete, consistent, and read by everything else."""

import pytest

from epochwatt.board.device.board_files import conf_text, parse_conf, strongest
from epochwatt.board.device.kinds import KINDS, POWER_PARTS
from epochwatt.board.device.stock_modes import stock_conf

RELEASES = [(kind, release) for kind in KINDS.values() for release in kind.releases]
IDS = [f"{kind.name}-{release.l4t}" for kind, release in RELEASES]


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
