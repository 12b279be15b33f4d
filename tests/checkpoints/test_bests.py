import pytest

from tandem.checkpoints.bests import Best, best_entries, best_entry, write_best
from tandem.checkpoints.ledger import EntryOutcome
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.records import decode
from tests.checkpoints.actors import METRIC, entry
from tests.checkpoints.hooked_store import HookedStore, once

IDS = [CheckpointId(step, 1) for step in range(1, 5)]


def _best(values, among=IDS):
    entries = [entry(checkpoint, metric=value) for checkpoint, value in values.items()]
    found = best_entry(entries, metric=METRIC, among=among)
    return found.checkpoint if found else None


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([], None),
        ([0.1, 0.3, 0.2], 1),
        ([0.3, 0.1, 0.3], 0),  # of equals the earliest
        ([0.0, 0.0], 0),
        ([None, 0.1], 1),
        ([None, None], None),
    ],
)
def test_the_highest_metric_is_the_best_and_the_earliest_of_equals(values, best):
    found = _best(dict(zip(IDS, values, strict=False)))
    assert found == (None if best is None else IDS[best])


def test_the_order_of_entries_does_not_matter():
    assert _best({IDS[2]: 0.3, IDS[0]: 0.3, IDS[1]: 0.2}) == IDS[0]


def test_a_checkpoint_off_the_line_is_never_the_best():
    assert _best({IDS[0]: 0.9, IDS[1]: 0.1}, among=IDS[1:]) == IDS[1]


def test_a_metric_without_a_value_is_never_the_best():
    assert best_entry([entry(IDS[0])], metric=METRIC, among=IDS) is None
    explicit = entry(IDS[0]).model_copy(update={"metrics": {METRIC: None}})
    assert best_entry([explicit], metric=METRIC, among=IDS) is None


def test_a_skipped_or_failed_entry_is_never_the_best():
    entries = [
        entry(IDS[0], metric=0.9, outcome=EntryOutcome.FAILED),
        entry(IDS[1], metric=0.9, outcome=EntryOutcome.SKIPPED),
    ]
    assert best_entry(entries, metric=METRIC, among=IDS) is None


def _read(store):
    return decode(store.get("best/val.json").data, Best, name="best/val.json")


def test_the_projection_names_the_best(store, clock):
    for checkpoint, value in ((IDS[0], 0.25), (IDS[1], 0.5)):
        write_best(
            store, entry(checkpoint, metric=value), metric=METRIC, surroundings=clock.surroundings
        )
    best = _read(store)
    assert (best.checkpoint, best.value, best.metric) == (IDS[1], 0.5, METRIC)


def test_another_writer_in_between_keeps_its_word(store, clock):
    def other():
        write_best(store, entry(IDS[1], metric=0.5), metric=METRIC, surroundings=clock.surroundings)

    late = HookedStore(store, before=once("replace", "best/", other))
    write_best(late, entry(IDS[0], metric=0.25), metric=METRIC, surroundings=clock.surroundings)
    assert _read(store).checkpoint == IDS[1]


def test_an_entry_without_the_metric_can_not_be_projected(store):
    scored = entry(IDS[0]).model_copy(update={"metrics": {METRIC: None}})
    with pytest.raises(ValueError, match=METRIC):
        write_best(store, scored, metric=METRIC)


def test_of_a_loss_the_lowest_are_the_best_and_of_equals_the_earliest():
    loss = "Loss/total_loss"
    entries = [
        entry(checkpoint).model_copy(update={"metrics": {loss: value}})
        for checkpoint, value in zip(IDS, (3.0, 1.0, 1.0), strict=False)
    ]
    found = best_entries(entries, metric=loss, among=IDS, count=2)
    assert [e.checkpoint for e in found] == [IDS[1], IDS[2]]
    assert best_entry(entries, metric=loss, among=IDS) == found[0]
    assert len(best_entries(entries, metric=loss, among=IDS, count=9)) == 3
