"""How long a process has been there."""

import subprocess
import sys
import time

from tests.deploy.rendering import CHECKOUT

_SAYS_IT = (
    "import time\nfrom services.ctl.status.hurrying import seconds_since_start\n"
    "first = seconds_since_start()\ntime.sleep(0.2)\nprint(first, seconds_since_start())"
)


def test_the_age_of_a_process_counts_from_before_its_first_line():
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _SAYS_IT], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    seconds = time.monotonic() - before
    first, second = map(float, done.stdout.split())
    assert 0.0 < first < second - 0.15
    assert second < seconds + 0.02  # the system counts in hundredths
