"""What draws power besides, by plain arithmetic."""

import numpy as np
import pytest

from epochwatt.sweeps.other_power import OtherPower


def test_the_rest_counts_while_it_works_and_until_a_deadline_idling_counts_instead():
    assert OtherPower().energy_j(10.0, 20.0) == 200
    assert OtherPower(rest_w=5.0).energy_j(10.0, 20.0) == 10 * (20 + 5)
    # switched off after the work: the deadline is a limit alone
    assert OtherPower(rest_w=5.0, deadline_s=100.0).energy_j(10.0, 20.0) == 10 * (20 + 5)
    whole = OtherPower(rest_w=5.0, idle_w=8.0, deadline_s=100.0)
    assert whole.energy_j(10.0, 20.0) == 10 * 20 + 90 * 8 + 100 * 5
    both = np.array([[10.0, 20.0], [40.0, 10.0]])
    assert whole.energy_j(*both.T).tolist() == pytest.approx([whole.energy_j(*m) for m in both])
