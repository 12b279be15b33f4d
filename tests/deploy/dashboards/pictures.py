"""Makes docs/images/dashboard-*.png: python -m tests.deploy.dashboards.pictures FOLDER

The first time it lets runs in different states go on for some minutes, and keeps what Prometheus
saw of them in the folder. Called again with that folder, it draws the pictures anew.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from tests.deploy.dashboards.asking import View, answers, events
from tests.deploy.dashboards.drawing import looks
from tests.deploy.dashboards.drawing.graphs import Event
from tests.deploy.dashboards.drawing.page import page, photograph
from tests.deploy.dashboards.prometheus import Prometheus, running_prometheus
from tests.deploy.dashboards.reading import board, panels
from tests.deploy.dashboards.runs import NAMESPACE
from tests.deploy.dashboards.scenes import SHOWN_RUN, play
from tests.deploy.rendering import CHECKOUT

_IMAGES = CHECKOUT / "docs/images"
_SCRAPE_SECONDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="for what Prometheus saw")
    parser.add_argument("--minutes", type=float, default=10.0, help="for the runs to go on")
    options = parser.parse_args()
    times = options.folder / "times.json"
    options.folder.mkdir(parents=True, exist_ok=True)
    with running_prometheus(options.folder, interval_seconds=_SCRAPE_SECONDS) as prometheus:
        if not times.exists():
            start = time.time()
            end = play(options.folder, prometheus, seconds=60 * options.minutes)
            times.write_text(json.dumps([start, end]))
            (options.folder / "targets.json").unlink()
        start, end = json.loads(times.read_text())
        for name, chosen in (("run", f"{NAMESPACE} / {SHOWN_RUN}"), ("fleet", "all namespaces")):
            _draw(prometheus, name, chosen, start, end, options.folder)


def _draw(
    prometheus: Prometheus, name: str, chosen: str, start: float, end: float, folder: Path
) -> None:
    made = board(f"tandem-{name}")
    variables = {"namespace": NAMESPACE, "run": SHOWN_RUN, "eval_set": ".+"}
    view = View(variables, start, end, _SCRAPE_SECONDS)
    shown = {
        panel["id"]: answers(prometheus, panel, view)
        for row, panel in panels(made)
        if not row["collapsed"]
    }
    marked = [
        Event(when, looks.colour(annotation["iconColor"]))
        for annotation in made["annotations"]["list"]
        for when, _ in events(prometheus, annotation, view)
    ]
    html, height = page(made, shown, view, chosen=chosen, events=marked)
    photograph(html, height, _IMAGES / f"dashboard-{name}.png", folder=folder)


if __name__ == "__main__":
    main()
