"""What the sampler asks of the kernel, and what it gives up again."""

import pytest

ASK = "from epochwatt.board.telemetry import process; process.wake_exactly()\n"


def test_reading_that_never_blocks_ends_real_time(python):
    burn = "import time\nwhile time.process_time() < 30 and process.scheduling() == first: pass\n"
    told = python(
        ASK + "first = process.scheduling()\n"
        "if first != 'real time': print('ordinary'); raise SystemExit\n"
        + burn
        + "print(process.scheduling())"
    ).strip()
    if told == "ordinary":
        pytest.skip("this user may not ask for real time")
    assert told.startswith("nice ")
