import logging

from tandem.checkpoints.ledger import (
    EntryOutcome,
    LedgerReader,
    read_entries,
    read_entry,
    read_ledger,
    record_entry,
    recorded_checkpoints,
    set_digest,
)
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.tries import record_try
from tests.checkpoints.actors import METRIC, VAL, entry
from tests.checkpoints.hooked_store import HookedStore

ONE, TWO = CheckpointId(1, 1), CheckpointId(10, 1)
OTHER_DIGEST = EvalSet("val", "d2")
UNNAMED = EvalSet("", "d1")


def test_the_first_entry_stands(store, clock):
    assert record_entry(store, entry(ONE, metric=0.5), surroundings=clock.surroundings)
    second = entry(ONE, outcome=EntryOutcome.SKIPPED, nonce="other")
    assert not record_entry(store, second, surroundings=clock.surroundings)
    assert read_entry(store, ONE, VAL) == entry(ONE, metric=0.5)


def test_an_entry_that_was_never_made_is_none(store):
    assert read_entry(store, ONE, VAL) is None


def test_each_set_and_digest_has_its_own_entries(store, clock):
    for eval_set in (VAL, OTHER_DIGEST, UNNAMED):
        assert record_entry(store, entry(ONE, eval_set=eval_set), surroundings=clock.surroundings)
    assert [e.set_digest for e in read_entries(store, VAL)] == ["d1"]
    assert [e.set_digest for e in read_entries(store, OTHER_DIGEST)] == ["d2"]
    assert [e.eval_set for e in read_entries(store, UNNAMED)] == [""]
    assert len(read_ledger(store)) == 3


def test_entries_come_by_step_and_without_the_tries(store, clock):
    record_try(store, ONE, VAL, recorder="e", surroundings=clock.surroundings)
    for checkpoint in (TWO, CheckpointId(9, 1), ONE):
        record_entry(store, entry(checkpoint), surroundings=clock.surroundings)
    assert [e.checkpoint.step for e in read_entries(store, VAL)] == [1, 9, 10]
    assert recorded_checkpoints(store, VAL) == {ONE, (9, 1), TWO}
    assert len(read_ledger(store)) == 3


def test_a_checkpoint_with_a_try_only_is_not_recorded(store, clock):
    record_try(store, ONE, VAL, recorder="e", surroundings=clock.surroundings)
    assert recorded_checkpoints(store, VAL) == frozenset()


def test_a_damaged_entry_is_left_out_and_named_in_the_log(store, clock, caplog):
    record_entry(store, entry(ONE, metric=0.5), surroundings=clock.surroundings)
    store.create("evaluations/val/10-1-d1.json", b"{")
    with caplog.at_level(logging.ERROR):
        assert [e.checkpoint for e in read_entries(store, VAL)] == [ONE]
    assert "evaluations/val/10-1-d1.json" in caplog.text


def test_a_reader_reads_each_entry_only_once(store, clock):
    record_entry(store, entry(ONE, metric=0.5), surroundings=clock.surroundings)
    operations = []
    reader = LedgerReader(HookedStore(store, before=lambda what, name: operations.append(what)))
    assert reader.read(VAL) == reader.read(VAL)
    record_entry(store, entry(TWO, metric=0.6), surroundings=clock.surroundings)
    assert [e.metrics[METRIC] for e in reader.read(VAL)] == [0.5, 0.6]
    assert operations == ["list", "get", "list", "list", "get"]


def test_the_digest_of_a_set_depends_on_its_facts_alone():
    digest = set_digest({"a": 1, "b": ["x"]})
    assert digest == set_digest({"b": ["x"], "a": 1})
    assert digest != set_digest({"a": 2, "b": ["x"]})
    assert len(digest) == 12
