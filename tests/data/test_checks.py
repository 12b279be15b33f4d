import pytest

from tandem.data.checks import check_records
from tandem.data.decoding import ClassTable
from tandem.data.records import open_records
from tandem.errors import DataError

GOOD = (0.25, 0.125, 0.75, 0.625)
CLASSES = ClassTable(2, {"a": 1, "b": 2})


@pytest.fixture
def check(write_records):
    def run(serialized, **options):
        return check_records(open_records([write_records(serialized)]), classes=CLASSES, **options)

    return run


def test_sound_records_are_counted_and_raise_nothing(check, serialize):
    report = check([serialize(boxes=[GOOD] * n, image__source_id=f"i{n}") for n in range(4)])

    assert (report.num_records, report.num_boxes, report.num_problem_records) == (4, 6, 0)
    assert report.notes() == []
    report.raise_for_problems()


def test_every_bad_record_is_named_before_training(check, serialize):
    report = check([serialize(labels=[3]), serialize(), serialize(texts=["A"])])

    with pytest.raises(DataError) as caught:
        report.raise_for_problems()

    first, second, third = str(caught.value).splitlines()
    assert first == "2 of 3 records can't be used:"
    assert second.endswith(
        "a.record:0 (source_id 'a.png'): class/label 3 of box 0 is outside 1 to 2 (num_classes)"
    )
    assert "a.record:2 (source_id 'a.png'): class text 'A' of box 0" in third


def test_only_the_first_problems_are_kept_in_words(check, serialize):
    report = check([serialize(labels=[3])] * 30)

    assert report.num_problem_records == 30
    assert len(report.problems) == 20


def test_what_is_odd_but_usable_is_noted(check, serialize):
    report = check(
        [
            serialize(boxes=[(0.1, 0.1, 0.5, 1.01), GOOD, GOOD]),
            serialize(texts=["b"], labels=[1]),
            serialize(image__source_id=None),
        ],
        max_boxes=2,
    )

    assert report.problems == ()
    assert [note.split(" ")[0] for note in report.notes()] == ["1"] * 5
    assert report.num_clipped_boxes == 1
    assert report.num_label_conflicts == 1
    assert report.num_images_over_max_boxes == 1
    assert report.num_empty_source_ids == 1
    assert report.num_repeated_source_ids == 1


def test_pixels_are_looked_at_on_demand(check, serialize):
    cut = [serialize(image__encoded=b"\xff\xd8\xff\xe0 cut")]

    assert check(cut).num_problem_records == 0
    assert "is a JPEG of 8 bytes that is cut short" in check(cut, decode_images=True).problems[0]


def test_real_sets_are_sound_or_say_why_not(shared):
    folder = shared / "realdata/tfrecords"
    raccoons = open_records([str(folder / "users/datitran__raccoon_dataset__test.record")])
    report = check_records(raccoons, classes=ClassTable(1, {"raccoon": 1}))
    assert (report.num_records, report.num_boxes, report.num_problem_records) == (40, 44, 0)

    empty = open_records([str(folder / "datumaro/roboflow_dataset/tfrecord/train/train.tfrecord")])
    report = check_records(empty, classes=ClassTable(2))
    assert report.num_problem_records == 2
    assert all("image/encoded is empty" in problem for problem in report.problems)

    sequences = open_records([str(folder / "upstream/snapshot_serengeti_sequence_examples.record")])
    (problem,) = check_records(sequences, classes=ClassTable(2)).problems
    assert "it is a tf.SequenceExample" in problem
