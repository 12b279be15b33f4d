"""Reads metrics of the run's processes, for `helm test`: read_metrics.py SECONDS FAMILY=URL..."""

import sys
import time
import urllib.error
import urllib.request


def read(family: str, url: str, deadline: float) -> list[str]:
    """Asks until the family is there; returns its samples, or ends with the reason."""
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except (OSError, urllib.error.URLError) as error:
            problem = f"nobody answers: {error}"
        else:
            samples = [line for line in lines if line.startswith(family)]
            if samples:
                return samples
            problem = f"it has no {family}, so another program answers there"
        if time.monotonic() > deadline:
            sys.exit(
                f"{url}: {problem}. Is the pod running? kubectl get pods; one that has "
                "finished has no metrics"
            )
        time.sleep(2)


deadline = time.monotonic() + float(sys.argv[1])
for argument in sys.argv[2:]:
    family, _, url = argument.partition("=")
    state = [line for line in read(family, url, deadline) if line.endswith(" 1.0")]
    print(f"{url}: {' '.join(state)}")
