"""The 24 faults, how each is played, and what the right answer is."""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from tests.faults import cluster_faults, process_faults, storage_faults
from tests.faults.judging import Expected


class Where(Enum):
    """What a fault is played on."""

    FOLDER = "processes on a local folder"
    BUCKET = "processes on a bucket of a server of their own"
    NODE = "a release on a Kubernetes node"


class Fault(NamedTuple):
    """A fault.

    Attributes:
        number: as in the list that people use.
        what: in words.
        where: it is played.
        expected: of the answer.
        play: does it to a scene, and asks.
        seconds: that it takes on a quiet machine, more or less: the longest ones begin first.
    """

    number: int
    what: str
    where: Where
    expected: Expected
    play: Callable[[Any], None]
    seconds: float = 60.0


def _fault(number, what, where, cause, codes, play, seconds=60.0):
    return Fault(number, what, where, Expected(cause, tuple(codes.split())), play, seconds)


_FOLDER, _BUCKET, _NODE = Where
_STORAGE, _PROCESS, _CLUSTER = storage_faults, process_faults, cluster_faults

FAULTS = (
    _fault(1, "no access to the bucket (403)", _BUCKET, "storage",
           "store-refused", _STORAGE.refused),
    _fault(2, "the bucket is missing (404)", _BUCKET, "storage",
           "store-missing", _STORAGE.bucket_missing, 20),
    _fault(3, "the store answers 503 for minutes", _BUCKET, "storage",
           "store-unavailable store-slow", _STORAGE.unavailable, 120),
    _fault(4, "each call to the store takes 5 s", _BUCKET, "storage",
           "store-slow", _STORAGE.slow),
    _fault(5, "the disk is full while saving", _BUCKET, "storage",
           "disk-full", _STORAGE.disk_full),
    _fault(6, "no such node pool", _NODE, "cluster",
           "unschedulable", _CLUSTER.no_such_pool, 20),
    _fault(7, "quota refuses the trainer's pod", _NODE, "quota",
           "quota-exceeded", _CLUSTER.quota_exhausted, 15),
    _fault(8, "the trainer's image can't be pulled", _NODE, "ours",
           "image-pull", _CLUSTER.image_missing, 30),
    _fault(9, "the trainer is killed for its memory", _NODE, "ours",
           "trainer-out-of-memory", _CLUSTER.trainer_out_of_memory, 45),
    _fault(10, "the evaluator is killed for its memory, in a loop", _NODE, "ours",
           "evaluator-out-of-memory", _CLUSTER.evaluator_out_of_memory, 120),
    _fault(11, "the trainer hangs in its input", _FOLDER, "data",
           "trainer-hanging", _PROCESS.input_hangs, 120),
    _fault(12, "the evaluator hangs in the middle of a set", _FOLDER, "ours",
           "evaluator-hanging", _PROCESS.evaluation_hangs, 120),
    _fault(13, "the loss is not finite", _FOLDER, "ours",
           "training-failed", _PROCESS.loss_not_finite),
    _fault(14, "a bit of the newest checkpoint is flipped", _FOLDER, "storage",
           "checkpoint-damaged", _STORAGE.flipped_bit_in_a_checkpoint, 45),
    _fault(15, "a bit of a ledger entry is flipped", _FOLDER, "storage",
           "entry-damaged", _STORAGE.flipped_bit_in_an_entry, 40),
    _fault(16, "the label map disagrees with the records", _NODE, "data",
           "bad-input", _CLUSTER.label_map_disagrees, 40),
    _fault(17, "preempted three times within an hour", _FOLDER, "cluster",
           "preempted-often", _PROCESS.preempted_three_times, 100),
    _fault(18, "finished, but its last checkpoint not evaluated", _FOLDER, "ours",
           "final-evaluation-owed", _PROCESS.last_evaluation_owed, 130),
    _fault(19, "checkpoints come faster than they are evaluated", _FOLDER, "ours",
           "evaluation-behind", _PROCESS.evaluator_too_slow),
    _fault(20, "two trainers on one run", _FOLDER, "ours",
           "two-trainers", _PROCESS.two_trainers),
    _fault(21, "a clock is wrong by an hour", _FOLDER, "cluster",
           "clock-wrong", _PROCESS.clock_wrong),
    _fault(22, "the evaluator's image is older than the trainer's", _FOLDER, "ours",
           "images-differ", _PROCESS.evaluator_image_older),
    _fault(23, "Kueue has evicted the trainer", _NODE, "quota",
           "kueue-evicted", _CLUSTER.evicted_by_kueue, 90),
    _fault(24, "the metric is far below the best", _FOLDER, "ours",
           "metric-regressed", _PROCESS.metric_fell),
)  # fmt: skip
