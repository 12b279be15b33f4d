"""Where a fault is played: a run with real processes, and the questions about it."""

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import NamedTuple

from services.ctl.demo.run import CONFIG
from services.exits import Exit
from tandem.checkpoints.gcs import GcsStore
from tandem.checkpoints.heartbeats import read_heartbeat
from tandem.checkpoints.ledger import read_ledger
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.retrying import Backoff
from tests.faults.asking import ask
from tests.rig.gcs import BUCKET
from tests.soak.places import BucketPlace, LocalPlace
from tests.soak.processes import Process

NUM_ANSWERS = 3
_BETWEEN_ANSWERS_SECONDS = 2.0
_WELL_SECONDS = 90.0
_START_SECONDS = 480.0  # a machine may have other things to do
_BACKOFF = Backoff(initial_seconds=0.1, max_seconds=1.0, deadline_seconds=5.0)
_NICENESS = {"evaluator": 6, "trainer": 8}  # a trainer takes what the others leave

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
eval_input_reader {{
  label_map_path: "{labels}" shuffle: false
  tf_record_input_reader {{ input_path: "{held_out}" }}
}}
"""


class CannotError(Exception):
    """This machine can't play the scene; the message says why."""


class NotShownError(Exception):
    """The scene did not come to the fault."""


class Stopped(BaseException):  # no error: the whole is to end, as with Ctrl-C
    """Somebody wants everything to end."""


class PatientProcess(Process):
    """One that gives way: nobody asks for the status on the machine that trains."""

    def __init__(self, *arguments, niceness, **options):
        super().__init__(*arguments, **options)
        os.setpriority(os.PRIO_PROCESS, self._child.pid, niceness)


class Common(NamedTuple):
    """What all scenes have in common.

    Attributes:
        stop: once it is set, every wait ends with `Stopped`.
        turn: whose it is to ask, as two that ask at a time would make each other late.
    """

    stop: threading.Event
    turn: threading.Lock


class Questions:
    """Asks for the status of one run, and keeps the answers.

    Args:
        arguments: that name the run.
        environment: of the asking process.
        folder: for what it prints.
        common: to all scenes.
    """

    look_seconds = 0.3

    def __init__(self, *arguments, environment, folder: Path, common):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.arguments = arguments
        self.before = []
        self.answers = []
        self._environment = environment
        self._common = common

    def well(self):
        """Asserts that all is well, or not yet quite so for a reason that is kept."""
        deadline = time.monotonic() + _WELL_SECONDS
        while True:
            answer = self._ask(f"before-{len(self.before)}")
            if answer.health == "healthy" or time.monotonic() > deadline:
                break
            self.pause(1.0)
        self.before.append(answer)
        if answer.health not in ("healthy", "degraded"):
            raise NotShownError(f"{answer.health or 'no answer'} already before the fault")

    def answer(self):
        """Asks several times in a row, as one answer may be right by chance."""
        for number in range(NUM_ANSWERS):
            if number:
                self.pause(_BETWEEN_ANSWERS_SECONDS)
            self.answers.append(self._ask(f"answer-{len(self.answers)}"))

    def _ask(self, name):
        keep = self.folder / f"{name}.json"
        with self._common.turn:
            return ask(*self.arguments, environment=self._environment, keep=keep)

    def pause(self, seconds):
        if self._common.stop.wait(seconds):
            raise Stopped

    def until(self, condition, what, *, seconds=_START_SECONDS):
        """What the condition gives, once that is true."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise NotShownError(f"{what}: not within {seconds:g} s")
            self.pause(self.look_seconds)
        return found


class Scene(Questions):
    """A run on a place, with its trainer and its evaluator.

    Args:
        place: where the run is.
        store: the run's, past all faults.
        files: records and label map of its own.
        folder: for logs and answers.
        gcs: the server, where the run is in a bucket.
        common: to all scenes.
    """

    def __init__(self, place, *, store, files, folder: Path, common, gcs=None):
        super().__init__(
            place.location, environment=place.environment, folder=folder, common=common
        )
        self.place = place
        self.store = store
        self.files = files
        self.gcs = gcs
        self.trainer = None
        self.evaluator = None
        self.processes = []

    # Processes.

    def start_trainer(self, *flags, every_n=150, owner="release", run=None, **variables):
        """Starts one, without waiting for it."""
        self.trainer = self._start(
            "trainer",
            *("--checkpoint-every-n", every_n, "--max-to-keep", 5, "--max-unevaluated", 20),
            *("--log-interval", 2, "--heartbeat-interval", 1, "--owner", owner, *flags),
            run=run,
            variables=variables,
        )
        return self.trainer

    def start_evaluator(self, *flags, **variables):
        """Starts one, without waiting for it."""
        self.evaluator = self._start(
            "evaluator",
            *("--poll-interval", 0.5, "--lease-seconds", 10, "--wait-interval", 900, *flags),
            variables=variables,
        )
        return self.evaluator

    def _start(self, kind, *flags, variables, run=None):
        override = _EXPERIMENT.format(**self.files)
        process = PatientProcess(
            f"{kind}-{len(self.processes)}",
            f"services.{kind}",
            [
                *("--run", run or self.place.location, "--config", CONFIG),
                *("--override", override, *flags),
            ],
            log=self.folder / f"{len(self.processes)}-{kind}.log",
            environment=self.place.environment | variables,
            niceness=_NICENESS[kind],
        )
        self.processes.append(process)
        return process

    def begin(self, *flags, evaluator=(), **options):
        """A trainer and an evaluator that run well, and `tandem status` says so."""
        self.start_trainer(*flags, **options)
        variables = {name: value for name, value in options.items() if name.isupper()}
        self.start_evaluator(*evaluator, **variables)
        self.wait_for_score()
        self.well()

    def restart_trainer(self, *flags, **options):
        """Asks the trainer to stop, and starts it again, as a Job does."""
        self.stop_trainer()
        number = len(self.line().attempts)
        self.start_trainer(*flags, **options)
        self.wait_for_attempt(number + 1)

    def stop_trainer(self):
        self.trainer.send(signal.SIGTERM)
        self.expect_exit(self.trainer, Exit.SAVED_RESUME_ME)

    def expect_exit(self, process, code, *, seconds=_START_SECONDS):
        """Waits for the end of a process, which has to be this one."""
        self.until(lambda: process.exit_code is not None, f"the end of {process.name}",
                   seconds=seconds)  # fmt: skip
        if process.exit_code != code:
            raise NotShownError(
                f"{process.name} ended with {process.exit_code}, expected was {int(code)}"
            )

    def end(self):
        """Ends all processes."""
        for process in self.processes:
            process.end()

    # The run, read past all faults.

    def line(self):
        return read_line(self.store)

    def scored_steps(self):
        return {entry.checkpoint.step for entry in read_ledger(self.store)}

    def num_pending(self):
        """Checkpoints that no entry tells of yet."""
        return len({c.step for c in self.line().checkpoints} - self.scored_steps())

    def beat(self, process):
        return read_heartbeat(self.store, process)

    def wait_for_score(self):
        """A checkpoint is scored that was not yet."""
        before = self.scored_steps()
        self.until(lambda: self._alive() and self.scored_steps() - before, "a new score")

    def wait_for_checkpoint(self, *, after=None):
        """The newest checkpoint, once there is one beyond that one."""
        self.until(
            lambda: (newest := self.line().newest) and (after is None or newest > after),
            "a newer checkpoint",
        )
        return self.line().newest

    def wait_for_attempt(self, number):
        """The attempt with this number trains."""

        def trains():
            beat = self.beat("trainer")
            return self._alive() and beat and (beat.attempt, beat.phase) == (number, "training")

        self.until(trains, f"attempt {number} in training")

    def _alive(self):
        for process in (self.trainer, self.evaluator):
            if process is not None and process.exit_code is not None:
                tail = process.text.strip()[-300:]
                raise NotShownError(f"{process.name} ended with {process.exit_code}: {tail}")
        return True

    def keep_facts(self):
        """The run's records as they were at the end, for people."""
        beats = {
            name: json.loads(self.store.get(name).data) for name in self.store.list("heartbeats/")
        }
        (self.folder / "heartbeats.json").write_text(json.dumps(beats, indent=1))


def local_scene(folder: Path, *, run: Path | None = None, files, common):
    """A scene in a local folder."""
    place = LocalPlace(run or folder / "run", temporary=folder / "tmp")
    return Scene(
        place, store=open_store(place.location), files=files, folder=folder / "scene", common=common
    )


def bucket_scene(folder: Path, *, server, client, files, common):
    """A scene in a bucket of a server of its own."""
    place = BucketPlace(server, "run", temporary=folder / "tmp")
    store = GcsStore(BUCKET, "run", client=client, backoff=_BACKOFF, answer_seconds=10.0)
    return Scene(
        place, store=store, files=files, folder=folder / "scene", common=common, gcs=server
    )


def own_environment(**variables):
    """This process's environment and more."""
    return {**os.environ, **variables}  # noqa: TID251
