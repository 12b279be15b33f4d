import pytest

from tandem.checkpoints.attempts import Attempt, AttemptEnd
from tandem.checkpoints.bests import Best
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.contents import record_type_of
from tandem.checkpoints.fetching import Damage
from tandem.checkpoints.heartbeats import HeartbeatRecord
from tandem.checkpoints.leases import LeaseRecord
from tandem.checkpoints.ledger import LedgerEntry
from tandem.checkpoints.pins import Pin
from tandem.checkpoints.retiring import Intent
from tandem.checkpoints.runs import Run
from tandem.checkpoints.tries import Try


@pytest.mark.parametrize(
    ("name", "record_type"),
    [
        ("run.json", Run),
        ("attempts/0002.json", Attempt),
        ("attempts/0002.end.json", AttemptEnd),
        ("checkpoints/ckpt-1-1.commit.json", Commit),
        ("checkpoints/ckpt-1-1.retire.json", Intent),
        ("checkpoints/ckpt-1-1.damaged.json", Damage),
        ("checkpoints/ckpt-1-1.index", None),
        ("checkpoints/checkpoint", None),
        ("leases/ckpt-1-1/val.json", LeaseRecord),
        ("pins/ckpt-1-1.json", Pin),
        ("evaluations/val/1-1-d1.json", LedgerEntry),
        ("evaluations/val/1-1-d1.try-2.json", Try),
        ("best/val.json", Best),
        ("best/val/x.json", None),
        ("heartbeats/trainer.json", HeartbeatRecord),
        ("heartbeats/trainer.txt", None),
        ("train/events.1", None),
    ],
)
def test_a_name_says_which_record_it_holds(name, record_type):
    assert record_type_of(name) is record_type
