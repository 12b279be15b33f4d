"""Plays rounds: disturb, start again what died, wait for progress, check every promise."""

import contextlib
import threading
import time
from pathlib import Path
from random import Random

from services.ctl.demo.run import CONFIG
from services.ctl.shapes import ShapesSpec, make_shapes
from tests.soak import disturbances, faults
from tests.soak.endings import finish
from tests.soak.places import places_of
from tests.soak.restoring import restored_step
from tests.soak.stage import EVAL_SETS, RoundLostError, Stage

_ROUNDS_PER_RUN = 20
_MAX_KEPT = 10
_SHARE_WITH_TROUBLE = 0.85
_SHARE_OF_DISTURBANCES = 0.5
_POLICIES = ("every", "newest-first")

# Few operations, as a start is mostly the tracing of them.
_EXPERIMENT = """
model {{ ssd {{
  image_resizer {{ fixed_shape_resizer {{ height: 64 width: 64 }} }}
  feature_extractor {{ depth_multiplier: 0.1 num_layers: 2 use_depthwise: false }}
  box_predictor {{ convolutional_box_predictor {{ use_depthwise: false }} }}
  anchor_generator {{ ssd_anchor_generator {{ num_layers: 2 }} }}
}} }}
train_config {{ batch_size: 4 num_steps: 0 }}
train_input_reader {{
  label_map_path: "{labels}" tf_record_input_reader {{ input_path: "{train}" }}
}}
"""
_EVAL_SET = """
eval_input_reader {{
  name: "{name}" label_map_path: "{labels}" shuffle: false
  tf_record_input_reader {{ input_path: "{held_out}" }}
}}
"""


def soak(store, *, num_rounds, seed, folder, say):
    """Plays rounds on runs of a kind of store (`local` or `gcs`); returns the violations."""
    with places_of(store, folder) as make_place:
        played = Soak(make_place, folder=folder, seed=seed, say=say)
        played.play(num_rounds)
    return played.violations


class Soak:
    """Rounds on runs, one after another.

    Args:
        make_place: from a run's name to a new place for it.
        folder: for data, logs and evidence.
        seed: of all chance.
        say: is told what goes on.
    """

    def __init__(self, make_place, *, folder: Path, seed: int, say):
        self._make_place = make_place
        self._folder = folder
        self._seed = seed
        self._say = say
        self._arguments = _experiment(folder / "data")
        self._now = "before the first round"
        self._logs = folder
        self._stage = None
        self.violations = []

    def play(self, num_rounds: int):
        """All rounds; the last run is ended too."""
        for first in range(1, num_rounds + 1, _ROUNDS_PER_RUN):
            self._play_run(range(first, min(first + _ROUNDS_PER_RUN, num_rounds + 1)))

    def _play_run(self, numbers):
        """Rounds on one run, and its end; a run that hangs is given up."""
        with self._run(f"run-{numbers[0]:03d}") as stage, contextlib.suppress(RoundLostError):
            self._now = f"the start of the run for round {numbers[0]}"
            self._timed(lambda: _wait_for_progress(stage))
            for number in numbers:
                self._play_round(stage, number)
            self._now = f"the end of the run after round {numbers[-1]}"
            self._timed(lambda: finish(stage, random=self._random(self._now)))

    @contextlib.contextmanager
    def _run(self, name):
        random = self._random(name)
        self._logs = self._folder / name / "logs"
        place = self._make_place(name)
        with contextlib.ExitStack() as ends:
            stage = Stage(
                place,
                arguments=self._arguments,
                logs=self._logs,
                policy=random.choice(_POLICIES),
                tell=self._tell,
            )
            self._stage = stage
            ends.callback(stage.end)
            ends.callback(place.relent)
            yield stage

    def _random(self, what):
        """Chance of its own for everything, so that one thing leaves others as they are."""
        return Random(f"{self._seed} {what}")

    def _play_round(self, stage, number):
        random = self._random(f"round {number}")
        trouble = disturbance = None
        if stage.place.has_faults and random.random() < _SHARE_WITH_TROUBLE:
            trouble = faults.choose(random)
        if trouble is not None and trouble.needs_restart:
            disturbance = disturbances.terminate_trainer(random)
        elif trouble is None or random.random() < _SHARE_OF_DISTURBANCES:
            disturbance = disturbances.choose(random)
        what = "; ".join(thing.what for thing in (trouble, disturbance) if thing)
        self._now = f"round {number}, seed {self._seed}: {what}"
        self._timed(lambda: self._disturb_and_check(stage, trouble, disturbance))

    def _disturb_and_check(self, stage, trouble, disturbance):
        with contextlib.ExitStack() as ends:
            if trouble is not None:
                stage.place.begin(trouble.faults)
            if trouble is not None and trouble.seconds is not None:
                end = threading.Timer(trouble.seconds, stage.place.relent)
                end.start()  # however long the disturbance takes
                ends.callback(end.join)
            if disturbance is not None:
                disturbance.act(stage)
        _wait_for_progress(stage)
        stage.place.relent()
        stage.observer.check()
        restored_step(stage.place.view, tell=self._tell)

    def _timed(self, work):
        began = time.monotonic()
        try:
            work()
        finally:
            progress = self._stage.observer.look()
            self._say(
                f"{self._now}: {time.monotonic() - began:.1f} s; newest {progress.newest}, "
                f"{progress.num_scored} scored"
            )

    def _tell(self, what):
        """A violation; the first few keep the run as it was."""
        text = f"VIOLATION in {self._now}: {what} (logs in {self._logs})"
        self.violations.append(text)
        self._say(text)
        if self._stage is not None and len(self.violations) <= _MAX_KEPT:
            self._stage.place.keep(self._logs.parent / f"evidence-{len(self.violations):02d}")


def _wait_for_progress(stage):
    """A newer checkpoint and a new score, both by processes that live now."""
    stage.tend()
    stage.place.settle()
    before = stage.observer.look()

    def has_advanced():
        now = stage.observer.look()
        is_newer = now.newest is not None and (before.newest is None or now.newest > before.newest)
        return is_newer and now.num_scored > before.num_scored

    stage.wait_until(has_advanced, "a newer checkpoint and a new score")


def _experiment(folder):
    """Flags that name a tiny experiment with two eval sets."""
    files = make_shapes(folder, ShapesSpec(num_train=16, num_held_out=6, image_size=64))
    paths = {"labels": files.label_map, "train": files.train, "held_out": files.held_out}
    override = _EXPERIMENT.format(**paths)
    override += "".join(_EVAL_SET.format(name=name, **paths) for name in EVAL_SETS)
    return ["--config", str(CONFIG), "--override", override]
