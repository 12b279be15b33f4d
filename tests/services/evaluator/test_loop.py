"""The evaluator's loop on a real local store; only the scorer is made up."""

import itertools
from pathlib import Path

import pytest
import tensorflow as tf
from prometheus_client import CollectorRegistry

from services.evaluator.jobs import JobWatch
from services.evaluator.loop import (
    FIRST_BATCH,
    LOOKING,
    MEASURING,
    PUBLISHING,
    RESTORING,
    SCORING,
    WAITING,
    Evaluator,
)
from services.evaluator.projections import Projections
from services.evaluator.recording import Recorder
from services.evaluator.sources import AdoptedSource, RunSource
from services.evaluator.watch import Ending
from services.events import EventFolder
from services.signals import StopRequest, StopRequestedError
from services.watchdog import Where
from tandem.checkpoints.adopted import UNVERIFIED
from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.claims import claim_attempt
from tandem.checkpoints.commits import commit_checkpoint
from tandem.checkpoints.heartbeats import Heartbeat, read_heartbeat
from tandem.checkpoints.leases import Leases
from tandem.checkpoints.ledger import EntryOutcome, read_ledger
from tandem.checkpoints.names import CheckpointId, EvalSet, events_folder
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.surroundings import Surroundings, seconds_since_1970
from tandem.checkpoints.tries import read_tries
from tandem.errors import ClusterRefusedError, ConfigError, RecordError
from tandem.evaluation.build import EvalTask
from tandem.evaluation.coco_metrics import TAGS, CocoMetrics
from tandem.evaluation.scoring import Evaluation
from tandem.kube.jobs import JobPhase, JobState
from tandem.kube.reporting import silent
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.health import Health
from tandem.training.states import load_tensors, save_tensors
from tests.checkpoints.hooked_store import HookedStore

DAY, NIGHT = EvalSet("day", "d1"), EvalSet("night", "d2")


class Scorer:
    """AP is the restored weight; fails or stops where told to."""

    def __init__(self, weight, *, failures=0, on_call=lambda: None, loss=1.0):
        self.losses = {"Loss/total_loss": loss, "Loss/regularization_loss": 0.5}
        self.weight = weight
        self.failures = failures
        self.on_call = on_call
        self.calls = 0

    def score(self, *, on_progress, monotonic):
        self.calls += 1
        self.on_call()
        on_progress(3, 6)
        if self.calls <= self.failures:
            raise RuntimeError(f"failure {self.calls}")
        on_progress(6, 6)
        numbers = dict.fromkeys(TAGS, float(self.weight.numpy()[0]))
        numbers["ap_small"] = None
        metrics = CocoMetrics(
            **numbers, per_category=(), num_images=6, num_groundtruth_boxes=9, num_detections=9
        )
        return Evaluation(metrics, self.losses, 6, 6, 6, 0.1, 0.1)


class StopAfterWaits(StopRequest):
    """Asks to stop when it was waited for so many times."""

    def __init__(self, number):
        super().__init__()
        self.left = number

    def wait(self, seconds):
        self.left -= 1
        if not self.left:
            self.set()


class Scene:
    """A run folder with a trainer to act by hand, and an evaluator."""

    def __init__(self, folder: Path):
        self.run = folder / "run"
        self.store = open_store(str(self.run))
        self.folder = folder
        self.weight = tf.Variable([0.0])
        self.registry = CollectorRegistry()
        self.stop = StopRequest()
        self.bests = []
        self.namespace = None
        self.surroundings = Surroundings(monotonic=itertools.count().__next__)
        self.use(self.store)
        self.attempt = claim_attempt(
            self.store,
            owner="o",
            holder="h",
            image="i",
            config_text="",
            config_digest="c",
            config_diff=lambda before: (),
        )

    def use(self, store):
        """Lets evaluators work through this client of the store."""
        self.store = store
        self.source = RunSource(
            store,
            results=store,
            reader="tester",
            scratch=self.folder / "scratch",
            lease_seconds=1000.0,
            surroundings=self.surroundings,
        )

    def commit(self, step, value):
        prefix = self.folder / f"files-{step}" / "ckpt"
        save_tensors({"w": tf.Variable([value])}, prefix)
        return commit_checkpoint(
            self.store,
            self.attempt,
            step=step,
            local_prefix=prefix,
            config_digest="c",
            samples_seen=step,
            training_seconds=1.0,
        )

    def end(self, outcome):
        end_attempt(self.store, self.attempt, outcome=outcome, final_step=None)

    def evaluator(self, scorers, *, policy="every", **told):
        metrics = EvaluatorMetrics(self.registry)
        tasks = tuple(
            EvalTask(s, scorer, include_categories=False) for s, scorer in scorers.items()
        )
        return Evaluator(
            source=self.source,
            results=self.store,
            load=lambda prefix: load_tensors({"w": self.weight}, prefix),
            tasks=tasks,
            projections={
                s.name: Projections(
                    self.store,
                    EventFolder(self.store, events_folder(s.name), scratch=self.folder),
                    eval_set=s,
                    metrics=metrics,
                    on_best=self.bests.append,
                )
                for s in scorers
            },
            recorder=Recorder(self.store, self.source, name="tester"),
            heartbeat=Heartbeat(self.store, "evaluator-main"),
            metrics=metrics,
            health=Health(patience_seconds=60),
            policy=policy,
            scratch=self.folder / "scratch",
            stop=self.stop,
            reporter=silent(),
            trainer_job=JobWatch(self.namespace, "trainer", monotonic=self.surroundings.monotonic),
            **told,
            surroundings=self.surroundings,
        )

    def watch(self, scorers, *, wait_interval=1e9, **more):
        return self.evaluator(scorers, **more).watch(
            wait_interval=wait_interval, poll_interval=0.001
        )

    def entries(self):
        found = read_ledger(self.store)
        return {(entry.eval_set, entry.checkpoint.step): entry for entry in found}


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def test_every_checkpoint_is_scored_once_in_every_set(scene):
    for step, value in ((1, 0.1), (2, 0.3), (3, 0.2)):
        scene.commit(step, value)
    scene.end(Outcome.FINISHED)
    scorers = {DAY: Scorer(scene.weight), NIGHT: Scorer(scene.weight)}
    assert scene.watch(scorers) is Ending.COMPLETED
    assert [scorer.calls for scorer in scorers.values()] == [3, 3]
    entries = scene.entries()
    assert {key: entry.metrics[TAGS["ap"]] for key, entry in entries.items()} == {
        (name, step): pytest.approx(value)
        for name in ("day", "night")
        for step, value in ((1, 0.1), (2, 0.3), (3, 0.2))
    }
    sample = scene.registry.get_sample_value
    labels = {"eval_set": "day", "metric": "AP"}
    assert sample("tandem_eval_metric", labels) == pytest.approx(0.2)
    assert sample("tandem_eval_best_metric", labels) == pytest.approx(0.3)
    assert sample("tandem_eval_best_step", {"eval_set": "day"}) == 2
    assert {(best.eval_set, best.checkpoint.step) for best in scene.bests} >= {
        ("day", 2),
        ("night", 2),
    }
    assert sample("tandem_eval_metric", {"eval_set": "day", "metric": "APs"}) is None
    assert not scene.store.list("leases/")


def test_a_restart_scores_nothing_again_but_shows_what_is_known(scene):
    scene.commit(1, 0.4)
    scene.end(Outcome.FINISHED)
    scene.watch({DAY: Scorer(scene.weight)})
    scene.registry = CollectorRegistry()
    again = Scorer(scene.weight)
    assert scene.watch({DAY: again}) is Ending.COMPLETED
    assert again.calls == 0
    labels = {"eval_set": "day", "metric": "AP"}
    assert scene.registry.get_sample_value("tandem_eval_metric", labels) == pytest.approx(0.4)


def test_a_failure_is_tried_again_and_the_checkpoint_given_up_after_three(scene):
    scene.commit(1, 0.4)
    scene.commit(2, 0.5)
    scene.end(Outcome.FINISHED)
    assert scene.watch({DAY: Scorer(scene.weight, failures=3)}) is Ending.COMPLETED
    entries = scene.entries()
    assert entries["day", 1].outcome is EntryOutcome.FAILED
    assert entries["day", 1].metrics == {}
    assert entries["day", 1].reasons == tuple(f"RuntimeError: failure {n}" for n in (1, 2, 3))
    assert entries["day", 2].outcome is EntryOutcome.SCORED


def test_a_try_that_succeeds_after_a_failure_counts(scene):
    scene.commit(1, 0.4)
    scene.end(Outcome.FINISHED)
    scene.watch({DAY: Scorer(scene.weight, failures=1)})
    assert scene.entries()["day", 1].outcome is EntryOutcome.SCORED


def test_a_damaged_checkpoint_is_recorded_as_failed_and_the_next_one_scored(scene):
    scene.commit(1, 0.4)
    scene.commit(2, 0.5)
    scene.end(Outcome.FINISHED)
    data = scene.run / "checkpoints" / "ckpt-1-1.data-00000-of-00001"
    flipped = bytearray(data.read_bytes())
    flipped[0] ^= 1
    data.unlink()
    data.write_bytes(flipped)
    found = []
    scorers = {DAY: Scorer(scene.weight)}
    assert scene.watch(scorers, on_damage=lambda: found.append(1)) is Ending.COMPLETED
    assert found == [1]
    entries = scene.entries()
    assert entries["day", 1].outcome is EntryOutcome.FAILED
    assert "damaged: checkpoints/ckpt-1-1.data" in entries["day", 1].reasons[0]
    assert entries["day", 2].outcome is EntryOutcome.SCORED


def test_a_stop_in_mid_evaluation_records_nothing_and_takes_its_try_back(scene):
    commit = scene.commit(1, 0.4)
    scorer = Scorer(scene.weight, on_call=scene.stop.set)
    assert scene.watch({DAY: scorer}) is Ending.STOPPED
    assert scene.entries() == {}
    assert read_tries(scene.store, commit.checkpoint, DAY) == ()
    assert not scene.store.list("leases/")


def test_weights_of_another_model_end_the_watch_and_leave_no_try_behind(scene):
    commit = scene.commit(1, 0.4)
    scene.weight = tf.Variable([0.0, 0.0])
    with pytest.raises(ConfigError, match="another model"):
        scene.watch({DAY: Scorer(scene.weight)})
    assert read_tries(scene.store, commit.checkpoint, DAY) == ()
    assert scene.entries() == {}
    assert not scene.store.list("leases/")


def test_a_loss_that_is_not_finite_is_absent_and_the_metrics_count(scene):
    scene.commit(1, 0.4)
    scene.end(Outcome.FINISHED)
    assert scene.watch({DAY: Scorer(scene.weight, loss=float("nan"))}) is Ending.COMPLETED
    metrics = scene.entries()["day", 1].metrics
    assert metrics["Loss/total_loss"] is None
    assert metrics[TAGS["ap"]] == pytest.approx(0.4)


def adopted_folder(scene, *, steps):
    """A `model_dir` as TF1's Saver leaves it."""
    folder = scene.folder / "model_dir"
    for step, value in steps.items():
        save_tensors({"w": tf.Variable([value])}, folder / f"model.ckpt-{step}")
        (folder / f"model.ckpt-{step}.meta").write_bytes(b"graph")
    return folder


def adopt(scene, folder):
    scene.source = AdoptedSource(
        open_store(str(folder)),
        results=scene.store,
        reader="tester",
        scratch=scene.folder / "scratch",
        lease_seconds=1000.0,
    )


def test_an_adopted_folder_is_scored_and_says_what_nobody_verified(scene):
    folder = adopted_folder(scene, steps={0: 0.1, 400: 0.3, 1000: 0.2})
    before = sorted(folder.iterdir())
    adopt(scene, folder)
    assert scene.watch({DAY: Scorer(scene.weight)}, wait_interval=20) is Ending.TIMED_OUT
    entries = scene.entries()
    assert {step: entry.metrics[TAGS["ap"]] for (_, step), entry in entries.items()} == {
        step: pytest.approx(value) for step, value in ((0, 0.1), (400, 0.3), (1000, 0.2))
    }
    assert entries["day", 400].unverified == UNVERIFIED
    assert entries["day", 400].config_digest == ""
    assert sorted(folder.iterdir()) == before
    assert not scene.store.list("leases/")


def test_a_damaged_checkpoint_of_an_adopted_folder_fails_and_the_others_are_scored(scene):
    folder = adopted_folder(scene, steps={1: 0.1, 2: 0.2})
    (folder / "model.ckpt-2.data-00000-of-00001").write_bytes(b"")
    adopt(scene, folder)
    scene.watch({DAY: Scorer(scene.weight)}, wait_interval=20)
    entries = scene.entries()
    assert entries["day", 1].outcome is EntryOutcome.SCORED
    assert entries["day", 2].outcome is EntryOutcome.FAILED


def test_the_weights_are_brought_and_restored_once_for_all_sets(scene):
    scene.commit(1, 0.1)
    scene.commit(2, 0.2)
    scene.end(Outcome.FINISHED)
    fetched = []
    fetch = scene.source.fetch
    scene.source.fetch = lambda c, *, on_piece: (
        fetched.append(c.step) or fetch(c, on_piece=on_piece)
    )
    scene.watch({DAY: Scorer(scene.weight), NIGHT: Scorer(scene.weight)})
    assert fetched == [1, 2]
    assert len(scene.entries()) == 4


def test_a_full_disk_here_says_nothing_about_the_checkpoint(scene):
    commit = scene.commit(1, 0.4)
    scene.end(Outcome.FINISHED)
    fetch, failures = scene.source.fetch, [OSError(28, "No space left on device")] * 4

    def flaky(checkpoint, *, on_piece):
        if failures:
            raise failures.pop()
        return fetch(checkpoint, on_piece=on_piece)

    scene.source.fetch = flaky
    assert scene.watch({DAY: Scorer(scene.weight)}) is Ending.COMPLETED
    assert scene.entries()["day", 1].outcome is EntryOutcome.SCORED
    assert len(read_tries(scene.store, commit.checkpoint, DAY)) == 1


def test_newest_first_begins_with_the_newest(scene):
    for step in (1, 2, 3):
        scene.commit(step, 0.1 * step)
    scene.end(Outcome.FINISHED)
    seen = []
    scorer = Scorer(scene.weight, on_call=lambda: seen.append(round(float(scene.weight[0]), 1)))
    scene.watch({DAY: scorer}, policy="newest-first")
    assert seen == [0.3, 0.2, 0.1]


def test_a_failed_trainer_ends_the_watch_after_its_last_checkpoint_is_scored(scene):
    scene.commit(1, 0.4)
    scene.end(Outcome.FAILED)
    assert scene.watch({DAY: Scorer(scene.weight)}) is Ending.TRAINER_FAILED
    assert len(scene.entries()) == 1


class JobOnly:
    """A namespace with one Job, in the states that it is given, the last one for good."""

    def __init__(self, *states):
        self.states = list(states)
        self.looks = 0

    def job_state(self, name):
        assert name == "trainer"
        self.looks += 1
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        return state


def test_a_silent_trainer_whose_job_waits_for_a_node_is_waited_for(scene):
    scene.commit(1, 0.1)
    waiting, failed = JobState(JobPhase.WAITING), JobState(JobPhase.FAILED, "BackoffLimitExceeded")
    scene.namespace = JobOnly(*[waiting] * 9, failed)
    assert scene.watch({DAY: Scorer(scene.weight)}, wait_interval=20) is Ending.TRAINER_FAILED
    assert scene.namespace.looks == 9 + 3  # a failed Job is looked at until that is sure
    assert scene.entries()["day", 1].outcome is EntryOutcome.SCORED


def test_without_the_right_to_see_the_job_only_time_tells(scene, caplog):
    scene.namespace = JobOnly(ClusterRefusedError("jobs.batch is forbidden"))
    assert scene.watch({DAY: Scorer(scene.weight)}, wait_interval=200) is Ending.TIMED_OUT
    assert scene.namespace.looks > 1
    assert caplog.text.count("without a look at the trainer's Job") == 1


def test_the_end_of_an_attempt_before_ends_nothing_while_a_new_job_may_go_on(scene):
    scene.commit(1, 0.1)
    scene.end(Outcome.FAILED)
    scene.namespace = JobOnly(*[JobState(JobPhase.WAITING)] * 5, JobState(JobPhase.COMPLETE))
    scene.watch({DAY: Scorer(scene.weight)})
    assert scene.namespace.looks == 6


def test_a_silent_trainer_ends_the_watch_by_the_wait_interval(scene):
    scene.commit(1, 0.4)
    assert scene.watch({DAY: Scorer(scene.weight)}, wait_interval=20) is Ending.TIMED_OUT
    assert len(scene.entries()) == 1


def test_an_idle_look_is_two_listings_a_heartbeat_read_and_one_written(scene):
    scene.commit(1, 0.4)
    scene.watch({DAY: Scorer(scene.weight), NIGHT: Scorer(scene.weight)}, wait_interval=20)
    calls = []
    scene.registry = CollectorRegistry()
    scene.use(HookedStore(scene.store, before=lambda *call: calls.append(call)))
    scene.stop = StopAfterWaits(3)
    looks = []
    wait = scene.stop.wait
    scene.stop.wait = lambda seconds: looks.append(len(calls)) or wait(seconds)
    scene.watch({DAY: Scorer(scene.weight), NIGHT: Scorer(scene.weight)})
    assert calls[looks[1] : looks[2]] == [
        ("list", "attempts/"),
        ("list", "checkpoints/"),
        ("get", "heartbeats/trainer.json"),
        ("replace", "heartbeats/evaluator-main.json"),
    ]


def test_another_evaluators_lease_is_left_alone(scene):
    commit = scene.commit(1, 0.4)
    lease = Leases(scene.store, holder="other").acquire(commit.checkpoint, "day", eval_set=DAY)
    scorer = Scorer(scene.weight)
    scene.stop = StopAfterWaits(5)
    assert scene.watch({DAY: scorer}) is Ending.STOPPED
    assert scorer.calls == 0
    assert scene.store.list("leases/") == [lease.name]


def test_a_lease_that_was_taken_for_stale_is_not_put_down_to_another_evaluator(scene, caplog):
    scene.commit(1, 0.4)
    scene.end(Outcome.FINISHED)

    def remove_the_lease_and_wait():
        for name in scene.store.list("leases/"):
            scene.store.delete(name, generation=scene.store.generation(name))
        for _ in range(20):
            scene.surroundings.monotonic()
        scorer.on_call = lambda: None

    scorer = Scorer(scene.weight, on_call=remove_the_lease_and_wait)
    assert scene.watch({DAY: scorer}) is Ending.COMPLETED
    assert "checkpoint 1-1 is given up: its lease was taken for stale and removed" in caplog.text
    assert "another" not in caplog.text
    assert scene.entries()["day", 1].outcome is EntryOutcome.SCORED


def test_a_wait_that_is_cut_short_says_so():
    stop = StopRequest()
    stop.set()
    with pytest.raises(StopRequestedError):
        stop.sleep(10)
    assert CheckpointId(1, 1) < CheckpointId(2, 1)


class Beats(Heartbeat):
    """Keeps all that was written."""

    def __init__(self, store):
        super().__init__(store, "evaluator-main")
        self.all = []

    def beat(self, phase, step=None, **facts):
        self.all.append((phase, step, facts))
        return super().beat(phase, step, **facts)


def test_a_heartbeat_says_how_far_behind_it_is_and_what_has_failed(scene):
    scene.commit(1, 0.4)
    scene.commit(2, 0.5)
    scene.end(Outcome.FINISHED)
    told = []
    evaluator = scene.evaluator(
        {DAY: Scorer(scene.weight, failures=1)}, on_failure=told.append, facts={"policy": "every"}
    )
    beats = evaluator._heartbeat = Beats(scene.store)
    evaluator.watch(wait_interval=1e9, poll_interval=0.001)
    assert [str(error) for error in told] == ["failure 1"]
    by_phase = {}
    for phase, step, facts in beats.all:
        by_phase.setdefault((phase, step), facts)
    base = {"policy": "every", "unreadable_entries": 0}
    assert by_phase["restoring", 1] == {**base, "backlog": 2, "tries_failed": 0}
    assert by_phase["backing_off", 1] == {**base, "backlog": 2, "tries_failed": 1}
    assert by_phase["publishing", 2] == {**base, "backlog": 1, "tries_failed": 0}
    last = read_heartbeat(scene.store, "evaluator-main").facts
    assert last.keys() == {*base, "backlog", "tries_failed", "beat_at"}


def test_an_entry_that_can_not_be_read_is_counted(scene):
    commit = scene.commit(1, 0.4)
    scene.commit(2, 0.4)
    scene.store.create(f"evaluations/day/{commit.checkpoint}-d1.json", b"{")
    scene.end(Outcome.FINISHED)
    scene.watch({DAY: Scorer(scene.weight)})
    assert scene.registry.get_sample_value("tandem_eval_unreadable_entries") == 1


def test_the_loop_says_where_it_is_before_it_goes_there(scene):
    seen = []

    class Path(Where):
        def __setattr__(self, name, value):
            if name == "at" and (not seen or seen[-1] != value):
                seen.append(value)
            super().__setattr__(name, value)

    scene.commit(1, 0.4)
    scene.commit(2, 0.4)
    scene.stop = StopAfterWaits(1)
    evaluator = scene.evaluator({DAY: Scorer(scene.weight)}, where=Path(LOOKING))
    assert evaluator.watch(wait_interval=1e9, poll_interval=0.001) is Ending.STOPPED
    assert seen == [
        *(LOOKING, RESTORING, FIRST_BATCH, SCORING, MEASURING, PUBLISHING),
        *(LOOKING, RESTORING, SCORING, MEASURING, PUBLISHING),
        *(LOOKING, WAITING),
    ]


def test_what_waits_since_when_and_how_the_run_ended_are_shown(scene):
    sample = scene.registry.get_sample_value
    times = {}

    def committed_at(checkpoint):
        times[checkpoint.step] = sample("tandem_eval_backlog")
        return 1000.0 + checkpoint.step

    held = []
    scorer = Scorer(
        scene.weight,
        on_call=lambda: held.append(
            (
                sample("tandem_ckpt_oldest_pending_timestamp_seconds"),
                sample("tandem_eval_lease_held"),
                sample("tandem_eval_run_outcome", {"outcome": "failed"}),
            )
        ),
    )
    scene.commit(1, 0.4)
    scene.commit(2, 0.4)
    scene.end(Outcome.FAILED)
    scene.watch({DAY: scorer}, committed_at=committed_at)
    assert held == [(1001.0, 1.0, 1.0), (1002.0, 1.0, 1.0)]
    assert sample("tandem_ckpt_oldest_pending_timestamp_seconds") == 0
    assert sample("tandem_eval_lease_held") == 0
    assert sample("tandem_eval_best_on_disk", {"eval_set": "day"}) == 1


def test_a_bad_record_and_a_damaged_checkpoint_are_counted(scene):
    class BadRecord(Scorer):
        def score(self, *, on_progress, monotonic):
            raise RecordError("day.record:3 is no image")

    scene.commit(1, 0.4)
    scene.end(Outcome.FINISHED)
    damaged = []
    scene.watch({DAY: BadRecord(scene.weight)}, on_damage=lambda: damaged.append(1))
    bad = "tandem_eval_bad_records_total"
    assert scene.registry.get_sample_value(bad, {"eval_set": "day"}) == 3  # tries
    assert damaged == []


def test_when_a_checkpoint_was_committed_is_read_once(scene):
    reads = []

    def note(operation, name):
        if operation == "get" and "commit" in name:
            reads.append(name)

    commit = scene.commit(1, 0.4)
    scene.use(HookedStore(scene.store, before=note))
    when = scene.source.committed_at(commit.checkpoint)
    assert when == seconds_since_1970(commit.committed_at)
    assert scene.source.committed_at(commit.checkpoint) == when
    assert len(reads) == 1
    assert scene.source.committed_at(CheckpointId(9, 1)) is None
