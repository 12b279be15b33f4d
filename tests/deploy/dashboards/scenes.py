"""Runs in different states, for the pictures: well, ended, stopped, hanging."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from services.ctl.shapes import ShapesFiles, ShapesSpec, make_shapes
from tests.deploy.dashboards.prometheus import Prometheus
from tests.deploy.dashboards.runs import EVAL_SETS, Pod, Runs, running
from tests.rig.gcs import running_gcs

SHOWN_RUN = "raccoon"

# As small as a detector can be that still learns the shapes within minutes.
_LEARNING = """
model {{
  ssd {{
    image_resizer {{ fixed_shape_resizer {{ height: 96 width: 96 }} }}
    feature_extractor {{ depth_multiplier: 0.35 }}
  }}
}}
train_config {{
  batch_size: 8
  num_steps: 3000
  optimizer {{
    momentum_optimizer {{
      learning_rate {{ cosine_decay_learning_rate {{ total_steps: 3000 }} }}
    }}
  }}
}}
train_input_reader {{
  label_map_path: "{labels}"
  tf_record_input_reader {{ input_path: "{train}" }}
}}
"""
_TRAINER = ("--heartbeat-interval", 2, "--owner", "scene")
_EVALUATOR = ("--poll-interval", 2, "--wait-interval", 3600)


def play(folder: Path, prometheus: Prometheus, *, seconds: float) -> float:
    """Lets all runs go on for so long, the one that is shown from the beginning.

    Returns the last moment at which they did.
    """
    end = time.monotonic() + seconds
    small = ShapesSpec(num_train=24, num_held_out=8, image_size=64)
    large = ShapesSpec(num_train=160, num_held_out=40, image_size=128)
    own = make_shapes(folder / "shapes-of-the-one-that-hangs", small)
    with (
        running_gcs() as gcs,
        running(folder, gcs, prometheus, make_shapes(folder / "shapes", large)) as shown,
        running(folder, gcs, prometheus, make_shapes(folder / "few-shapes", small)) as others,
        running(folder, gcs, prometheus, own) as hanging,
    ):
        trainer = _start_shown(shown, "trainer")
        evaluator = _start_shown(shown, "evaluator")
        badger = _start(hanging, "badger")
        otter = _start(others, "otter")
        lynx = _start(others, "lynx", steps=150)
        _hang(hanging, own, *badger)
        _stop(others, *otter)
        _finish(others, *lynx)
        # Killed once on its way, and well at the end.
        shown.wait_for(lambda: trainer.saves() > 1, trainer)
        shown.forget(trainer)
        again = _start_shown(shown, "trainer")
        shown.wait_for(lambda: time.monotonic() > end and again.saves() > 1, again, seconds=1200)
        assert evaluator.process.exit_code is None, evaluator.process.text
        return time.time()


def _start_shown(runs: Runs, component: str) -> Pod:
    flags = (*_TRAINER, "--checkpoint-every-n", 100) if component == "trainer" else _EVALUATOR
    return runs.start(component, SHOWN_RUN, *flags, override=_LEARNING)


def _start(runs: Runs, run: str, *, steps: int = 100_000) -> tuple[Pod, Pod]:
    flags = ("--checkpoint-every-n", 60, "--num-train-steps", steps)
    trainer = runs.start("trainer", run, *_TRAINER, *flags)
    evaluator = runs.start("evaluator", run, *_EVALUATOR, "--on-end", "stay")
    return trainer, evaluator


def _hang(runs: Runs, shapes: ShapesFiles, trainer: Pod, evaluator: Pod) -> None:
    """Its records turn into a pipe that nobody writes to: reading them again never returns."""
    runs.wait_for(lambda: len(evaluator.scored_sets()) == len(EVAL_SETS), evaluator)
    pipe = shapes.train.with_name("pipe")
    os.mkfifo(pipe)
    kept = shapes.train.with_name("kept")
    os.link(shapes.train, kept)
    pipe.replace(shapes.train)
    before = -1
    while trainer.step() != before:
        before = trainer.step()
        time.sleep(5)
    kept.replace(shapes.train)


def _stop(runs: Runs, trainer: Pod, evaluator: Pod) -> None:
    """It is asked to leave, saves, and waits for its next attempt."""
    runs.wait_for(lambda: len(evaluator.scored_sets()) == len(EVAL_SETS), evaluator)
    trainer.process.send(signal.SIGTERM)
    trainer.process.wait(60)
    runs.forget(trainer)


def _finish(runs: Runs, trainer: Pod, evaluator: Pod) -> None:
    runs.wait_for(lambda: len(evaluator.scored_sets()) == len(EVAL_SETS), evaluator)
    trainer.process.wait(120)
    runs.forget(trainer)
