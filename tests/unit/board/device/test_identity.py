"""Which board it is, and what runs on it."""

import pytest

from epochwatt.board.device import identity

# SOURCE: model and compatible of the device trees of NVIDIA's boards, as users print them; the
# release line as /etc/nv_tegra_release of an AGX Xavier with JetPack 4.5.1 shows it.
RELEASE = (
    "# R32 (release), REVISION: 5.1, GCID: 26202423, BOARD: t186ref, EABI: aarch64, "
    "DATE: Fri Feb 19 16:50:29 UTC 2021\n"
)


@pytest.mark.parametrize(
    ("line", "l4t", "jetpack"),
    [
        (RELEASE, "32.5.1", "4.5.1"),
        ("# R32 (release), REVISION: 7.4, GCID: 33514132, BOARD: t210ref", "32.7.4", "4.6.4"),
        ("# R34 (release), REVISION: 1.1, GCID: 30414990, BOARD: t186ref", "34.1.1", "5.0.1 DP"),
        ("# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref", "35.4.1", "5.1.2"),
        ("# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic", "36.4.3", "6.2"),
        ("# R39 (release), REVISION: 2.0, GCID: 1, BOARD: generic", "39.2.0", "7.2"),
        ("# R36 (release), REVISION: 9.9, GCID: 1, BOARD: generic", "36.9.9", "6.2.3 or later"),
        # recorded by others, stored index 10878535018, 61296752682, 52480900634, 71424566968,
        # 55437200832, 69713019125, 70074959102, 58103012036, 68579880183
        ("# R32 (release), REVISION: 5, GCID: 25531747, BOARD: t186ref", "32.5", "4.5"),
        ("# R32 (release), REVISION: 7.6, GCID: 38171779, BOARD: t210ref", "32.7.6", "4.6.6"),
        ("# R35 (release), REVISION: 6.4, GCID: 43803471", "35.6.4", "5.1.5 or later"),
        ("# R36 (release), REVISION: 4.7, GCID: 42132812, BOARD: generic", "36.4.7", "6.2.1"),
        ("# R36 (release), REVISION: 5.0, GCID: 43688277, BOARD: generic", "36.5.0", "6.2.2"),
        ("# R36 (release), REVISION: 5.2, GCID: 123", "36.5.2", "6.2.3"),
        ("# R38 (release), REVISION: 2.2, GCID: 42205042, BOARD: generic", "38.2.2", "7.0"),
        (
            "# R39 (release), REVISION: 2.0, GCID: 45755727, BOARD: generic, EABI: aarch64, "
            "DATE: Mon Jun  1 09:28:48 PM UTC 2026\n# KERNEL_VARIANT: oot",
            "39.2.0",
            "7.2",
        ),
        ("# R39 (release), REVISION: 2.1, GCID: 46758480, BOARD: generic", "39.2.1", "7.2.1"),
        ("# R40 (release), REVISION: 0.0", "40.0.0", "7.2.2 or later"),
        ("# R28 (release), REVISION: 2.1, GCID: 1, BOARD: t186ref", "28.2.1", ""),
        ("# KERNEL_VARIANT: oot\n# R36 (release), REVISION: 3.0, BOARD: x", "36.3.0", "6.0"),
        ("", "", ""),
        ("R32, but not as NVIDIA writes it", "", ""),
    ],
)
def test_release_and_jetpack(line, l4t, jetpack):
    assert identity.l4t_release(line) == l4t
    assert identity.jetpack(identity.l4t_release(line)) == jetpack
