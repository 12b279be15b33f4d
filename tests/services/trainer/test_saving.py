"""Saving on a real store, whose operations can be held up or made to fail."""

import threading
from dataclasses import replace

import pytest
import tensorflow as tf
from prometheus_client import CollectorRegistry

from services.signals import StopRequest
from services.trainer.background import Background
from services.trainer.committing import Committer
from services.trainer.saving import Saver
from tandem.checkpoints.claims import claim_attempt
from tandem.checkpoints.commits import read_commit
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.policies import RetentionPolicy
from tandem.checkpoints.retiring import Retirer
from tandem.errors import (
    AttemptSupersededError,
    NonFiniteLossError,
    StoreError,
    StoreUnavailableError,
)
from tandem.telemetry.trainer_metrics import TrainerMetrics
from tandem.training.optimizers import Momentum
from tandem.training.states import TrainingState, resume
from tests.checkpoints.actors import FakeClock
from tests.checkpoints.hooked_store import HookedStore

PATIENCE = 30.0  # of waits that end by an event; only a broken test waits so long


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path / "run"))


def new_state(value=1.0):
    weights = {"w": tf.Variable([value, value])}
    return TrainingState(model=weights, optimizer=Momentum(weights, momentum=0.9))


def claim(store, **policy):
    return claim_attempt(
        store,
        owner="me",
        holder="me/1",
        image="test",
        config_text="",
        config_digest="d",
        config_diff=lambda before: (),
        retention=RetentionPolicy(**policy),
        eval_sets=[EvalSet("", "abc")],
    )


class Gate:
    """Holds up the upload of a step's data, or makes it fail."""

    def __init__(self):
        self.began = {}
        self.may_pass = {}
        self.errors = {}
        self.part = ".data"

    def hold(self, step, *, part=".data"):
        self.part = part
        self.began[step], self.may_pass[step] = threading.Event(), threading.Event()

    def fail(self, step, error, times=1):
        self.errors[step] = [error] * times

    def __call__(self, operation, name):
        if operation != "create_from_file" or self.part not in name:
            return
        step = int(name.split("-")[1])
        if step in self.began:
            self.began[step].set()
            assert self.may_pass[step].wait(PATIENCE)
        if self.errors.get(step):
            raise self.errors[step].pop()


class Rig:
    """A saver whose loop is the test."""

    def __init__(self, store, scratch, *, attempt=None, state=None, deadline=25.0, **policy):
        scratch.mkdir(exist_ok=True)
        self.clock, self.gate = FakeClock(), Gate()
        self.store = HookedStore(store, before=self.gate)
        self.attempt = attempt or claim(store, **policy)
        self.state = state or new_state()
        self.stop = StopRequest(monotonic=lambda: self.clock.now)
        self.registry = CollectorRegistry()
        self.waits = []
        self.when_waiting = lambda seconds: None
        self.background = Background()
        self.saver = Saver(
            Committer(
                self.store,
                self.attempt,
                retirer=Retirer(self.store, self.attempt),
                scratch=scratch,
                surroundings=self.clock.surroundings,
            ),
            self.attempt,
            self.state,
            background=self.background,
            metrics=TrainerMetrics(self.registry),
            stop=self.stop,
            deadline_seconds=deadline,
            on_wait=self._on_wait,
            batch_size=8,
            samples_before=100,
            seconds_before=50.0,
            monotonic=lambda: self.clock.now,
            sleep=self.clock.sleep,
        )

    def _on_wait(self, seconds):
        self.waits.append(seconds)
        self.clock.now += 1.0
        self.when_waiting(seconds)

    def step_to(self, step):
        self.state.global_step.assign(step)
        self.state.model["w"].assign([float(step), 0.0])
        self.clock.now += 1.0

    def save(self, *steps):
        for step in steps:
            self.step_to(step)
            self.saver.save()

    def settle(self):
        """What has happened until now; further saves may follow."""
        assert self.background.wait_until_idle(PATIENCE)

    @property
    def committed(self):
        return [checkpoint.step for checkpoint in read_line(self.store).checkpoints]

    def metric(self, name, **labels):
        return self.registry.get_sample_value(f"tandem_ckpt_{name}", labels)


@pytest.fixture
def new_rig(store, tmp_path):
    rigs = []

    def make(**kwargs):
        rigs.append(Rig(store, tmp_path / "run", **kwargs))
        return rigs[-1]

    yield make
    for rig in rigs:
        for event in rig.gate.may_pass.values():
            event.set()
        rig.background.close(PATIENCE)


@pytest.fixture
def rig(new_rig):
    return new_rig()


def weights_of(store, step):
    path = store.local_path(f"checkpoints/ckpt-{step}-1.index")
    return tf.train.load_variable(str(path.with_suffix("")), "w").tolist()


def test_a_save_commits_the_step_and_what_it_cost(rig):
    rig.save(3)
    rig.saver.finish()
    commit = read_commit(rig.store, CheckpointId(3, 1))
    assert commit.samples_seen == 100 + 3 * 8
    assert commit.training_seconds == 51.0
    assert rig.saver.committed_step == 3
    assert rig.metric("saves_total", outcome="ok") == 1
    assert rig.metric("last_commit_step") == 3
    assert rig.metric("stall_seconds_count") == 1


def test_plain_tensorflow_finds_and_reads_what_was_saved(rig, tmp_path):
    rig.save(3)
    rig.saver.finish()
    prefix = tf.train.latest_checkpoint(str(tmp_path / "run" / "checkpoints"))
    fresh = new_state(0.0)
    resume(fresh, prefix)
    assert fresh.step == 3
    assert fresh.model["w"].numpy().tolist() == [3.0, 0.0]


def test_a_step_is_committed_once(rig):
    rig.save(3)
    rig.saver.save()
    rig.saver.finish()
    rig.saver.finish()
    assert rig.committed == [3]
    assert rig.metric("saves_total", outcome="ok") == 1


def test_nothing_is_left_of_the_files_under_way(rig, tmp_path):
    rig.save(1)
    rig.saver.finish()
    assert not list((tmp_path / "run").glob(".saving*"))


def test_the_loop_goes_on_while_the_store_takes_its_time(rig):
    rig.gate.hold(1)
    rig.save(1)
    assert rig.gate.began[1].wait(PATIENCE)
    rig.save(2)
    assert rig.metric("pending_saves") == 2
    assert (rig.committed, rig.waits) == ([], [])
    rig.step_to(3)
    rig.gate.may_pass[1].set()
    rig.settle()
    assert rig.committed == [1, 2]
    assert rig.metric("pending_saves") == 0
    assert [weights_of(rig.store, step)[0] for step in (1, 2)] == [1.0, 2.0]


def test_a_third_save_waits_until_the_first_is_committed_and_all_are(rig):
    rig.gate.hold(1)
    rig.save(1)
    assert rig.gate.began[1].wait(PATIENCE)
    rig.save(2)

    def release_after_two_looks(seconds):
        if len(rig.waits) == 3:
            rig.gate.may_pass[1].set()

    rig.when_waiting = release_after_two_looks
    rig.save(3)
    assert rig.waits[:3] == [0.0, 1.0, 2.0]
    assert rig.metric("stall_seconds_sum") >= 3.0
    rig.saver.finish()
    assert rig.committed == [1, 2, 3]
    assert [weights_of(rig.store, step)[0] for step in (1, 2, 3)] == [1.0, 2.0, 3.0]


def test_the_newest_are_kept_and_the_others_retired(new_rig):
    rig = new_rig(max_to_keep=2, max_unevaluated=0)
    for step in (1, 2, 3, 4):
        rig.save(step)
        rig.settle()
    assert rig.committed == [3, 4]


def test_an_unavailable_store_costs_that_checkpoint_and_the_next_save_is_the_next_try(rig):
    rig.gate.fail(1, StoreUnavailableError("away"), times=99)
    rig.save(1)
    rig.settle()
    assert rig.committed == []
    assert rig.metric("saves_total", outcome="error") == 1
    rig.save(2)
    rig.saver.finish()
    assert rig.committed == [2]


def test_the_third_failure_in_a_row_is_raised_in_the_loop(rig):
    for step in (1, 2, 3):
        rig.gate.fail(step, StoreUnavailableError("away"), times=99)
    for step in (1, 2):
        rig.save(step)
        rig.settle()
        rig.saver.raise_failure()
    rig.save(3)
    with pytest.raises(StoreUnavailableError, match="away"):
        rig.settle()
    with pytest.raises(StoreUnavailableError, match="away"):
        rig.saver.raise_failure()
    assert rig.metric("saves_total", outcome="error") == 3


def test_a_store_that_comes_back_is_forgiven(rig):
    for step in (1, 2, 4, 5):
        rig.gate.fail(step, StoreUnavailableError("away"), times=99)
    for step in (1, 2, 3, 4, 5, 6):
        rig.save(step)
        rig.settle()
    assert rig.committed == [3, 6]


def test_a_refusal_is_raised_in_the_loop_at_the_next_look(rig):
    rig.gate.fail(1, StoreError("no permission"))
    rig.save(1)
    with pytest.raises(StoreError, match="no permission"):
        rig.settle()
    for call in (rig.saver.raise_failure, rig.saver.save, rig.saver.finish, rig.saver.settle):
        rig.step_to(2)
        with pytest.raises(StoreError, match="no permission"):
            call()


def test_a_superseded_attempt_commits_nothing_and_says_so(rig, store):
    claim(store)
    rig.save(3)
    with pytest.raises(AttemptSupersededError):
        rig.saver.finish()
    assert rig.committed == []
    assert rig.metric("saves_total", outcome="error") == 1


def test_the_last_save_is_tried_again_with_its_own_state(rig):
    rig.gate.fail(1, StoreUnavailableError("away"), times=99)
    rig.gate.hold(1)
    rig.save(1)
    rig.when_waiting = lambda seconds: (rig.gate.errors.clear(), rig.gate.may_pass[1].set())
    rig.saver.finish()
    assert rig.committed == [1]


def test_a_last_step_whose_save_failed_before_is_saved_again(rig):
    rig.gate.fail(1, StoreUnavailableError("away"), times=99)
    rig.save(1)
    rig.settle()
    rig.gate.errors.clear()
    rig.saver.finish()
    assert rig.committed == [1]


def test_a_last_save_that_fails_thrice_is_raised(rig):
    rig.gate.fail(1, StoreUnavailableError("away"), times=999)
    rig.step_to(1)
    with pytest.raises(StoreUnavailableError, match="away"):
        rig.saver.finish()
    assert rig.metric("saves_total", outcome="error") == 3


def test_what_is_queued_is_committed_before_a_failed_attempt_ends(rig):
    rig.gate.hold(1)
    rig.save(1, 2)
    rig.step_to(3)
    rig.when_waiting = lambda seconds: rig.gate.may_pass[1].set()
    rig.saver.settle()
    assert rig.committed == [1, 2]


def test_settling_says_when_what_was_queued_is_not_committed(rig):
    rig.gate.fail(1, StoreUnavailableError("away"), times=99)
    rig.save(1)
    rig.settle()
    with pytest.raises(StoreUnavailableError, match="away"):
        rig.saver.settle()


def test_a_store_that_hangs_is_given_up_at_the_deadline_counted_from_the_first_request(new_rig):
    rig = new_rig(deadline=10.0)
    rig.gate.hold(1)
    rig.step_to(1)
    rig.stop.set()
    asked_at = rig.clock.now
    rig.when_waiting = lambda seconds: rig.stop.set()  # a second signal changes nothing
    with pytest.raises(StoreUnavailableError, match="step 1 is not committed 10 s after"):
        rig.saver.finish()
    assert asked_at + 10.0 <= rig.clock.now < asked_at + 12.0
    assert rig.committed == []


def test_a_save_that_has_hardly_begun_when_asked_to_stop_gives_way_to_the_last(rig, tmp_path):
    rig.gate.hold(1)
    rig.save(1)
    assert rig.gate.began[1].wait(PATIENCE)
    rig.stop.set()
    rig.step_to(2)
    rig.when_waiting = lambda seconds: rig.gate.may_pass[1].set()
    rig.saver.finish()
    assert rig.committed == [2]
    assert weights_of(rig.store, 2) == [2.0, 0.0]
    assert rig.metric("saves_total", outcome="error") == 0
    assert not list((tmp_path / "run").glob(".saving*"))


def test_a_save_that_is_mostly_done_when_asked_to_stop_is_committed_and_then_the_last(rig):
    rig.gate.hold(1, part=".index")  # which goes last
    rig.save(1)
    assert rig.gate.began[1].wait(PATIENCE)
    rig.stop.set()
    rig.step_to(2)
    rig.when_waiting = lambda seconds: rig.gate.may_pass[1].set()
    rig.saver.finish()
    assert rig.committed == [1, 2]


def test_asked_to_stop_while_it_waits_the_loop_goes_on_and_the_last_takes_the_waiting_ones_place(
    rig,
):
    rig.gate.hold(1, part=".index")
    rig.save(1)
    assert rig.gate.began[1].wait(PATIENCE)
    rig.save(2)
    rig.when_waiting = lambda seconds: rig.stop.set()
    rig.save(3)
    assert rig.metric("pending_saves") == 2
    rig.when_waiting = lambda seconds: rig.gate.may_pass[1].set()
    rig.saver.finish()
    assert rig.committed == [1, 3]
    assert weights_of(rig.store, 3) == [3.0, 0.0]


def test_once_asked_to_stop_nothing_is_retired_any_more(new_rig):
    rig = new_rig(max_to_keep=1, max_unevaluated=0)
    rig.save(1)
    rig.settle()
    rig.stop.set()
    rig.step_to(2)
    rig.saver.finish()
    assert rig.committed == [1, 2]


def test_the_last_act_is_done_after_the_last_save_and_its_failure_is_raised(rig):
    acts = []
    rig.save(1)
    rig.saver.finish()
    rig.saver.act_last(lambda: acts.append(rig.committed))
    assert acts == [[1]]

    def fail():
        raise StoreError("no end")

    with pytest.raises(StoreError, match="no end"):
        rig.saver.act_last(fail)


def test_an_error_of_another_kind_still_lets_queued_states_be_committed(rig):
    rig.save(1)

    def train():
        with rig.saver:
            raise ValueError("out of memory")

    with pytest.raises(ValueError, match="out of memory"):
        train()
    assert rig.committed == [1]


def test_leaving_does_not_wait_for_a_store_that_hangs(rig):
    rig.gate.hold(1)
    rig.save(1)
    assert rig.gate.began[1].wait(PATIENCE)

    def train():
        with rig.saver:
            raise NonFiniteLossError

    with pytest.raises(NonFiniteLossError):
        train()
    assert rig.committed == []


def test_a_resumed_step_counts_as_committed(rig, new_rig, store):
    rig.save(3)
    rig.saver.finish()
    second = claim(store)
    assert second.resumed_from == CheckpointId(3, 1)
    again = new_rig(attempt=second, state=replace(rig.state))
    again.saver.save()
    again.saver.finish()
    assert again.committed == [3]
