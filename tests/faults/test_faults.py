"""Three of the faults, for every change; `make faults` injects all of them."""

import threading

import pytest


@pytest.mark.slow
def test_a_hang_a_diverging_loss_and_a_flipped_bit_are_told_from_a_healthy_run(tmp_path):
    from tests.faults.catalogue import FAULTS  # noqa: PLC0415  # TensorFlow comes along
    from tests.faults.playing import Player  # noqa: PLC0415

    player = Player(tmp_path, say=print, stop=threading.Event())
    tally = player.play([f for f in FAULTS if f.number in (11, 13, 15)], workers=2)
    # How long an answer takes, `make faults` says: here, other tests run at the same time.
    assert tally.last_line == "right: 3 of 3, false healthy: 0", "\n".join(tally.lines())
