import logging
from pathlib import Path

import numpy as np
import pytest

from tandem import fields
from tandem.data.augment.crops import SsdRandomCrop
from tandem.data.augment.flips import RandomHorizontalFlip
from tandem.data.decoding import ClassTable
from tandem.data.padding import NUM_DROPPED_BOXES
from tandem.data.pipelines import evaluation_dataset, training_dataset
from tandem.data.records import open_records
from tandem.data.resizers import FixedShapeResizer
from tandem.data.streams import ReadOptions
from tandem.errors import RecordError

GOOD = (0.25, 0.125, 0.75, 0.625)
RESIZER = FixedShapeResizer(12, 10)


def train(records, *, batch_size=2, max_boxes=3, num_classes=2, **options):
    return training_dataset(
        records,
        classes=ClassTable.of(None, num_classes=num_classes),
        resizer=options.pop("resizer", RESIZER),
        steps=(RandomHorizontalFlip(), SsdRandomCrop()),
        options=options.pop("read", ReadOptions()),
        batch_size=batch_size,
        max_boxes=max_boxes,
        seed=options.pop("seed", 3),
        **options,
    )


def evaluate(records, *, batch_size=1, num_classes=2):
    classes = ClassTable.of(None, num_classes=num_classes)
    return evaluation_dataset(records, classes=classes, resizer=RESIZER, batch_size=batch_size)


def take(pipeline, count):
    return [batch for _, batch in zip(range(count), pipeline.batches())]  # noqa: B905


def assert_equal(batches, others):
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        for key, value in batch.items():
            np.testing.assert_array_equal(value, other[key], err_msg=key)


@pytest.fixture
def records(serialize, write_records):
    """Seven images; the i-th has i boxes."""
    serialized = [serialize(boxes=[GOOD] * i, image__source_id=f"i{i}") for i in range(7)]
    return open_records([write_records(serialized)])


@pytest.fixture(scope="module")
def raccoons(shared):
    return open_records(
        [str(shared / "realdata/tfrecords/users/datitran__raccoon_dataset__test.record")]
    )


def test_training_batches_have_static_shapes_and_all_keys(records):
    pipeline = train(records)

    shapes = {key: tuple(spec.shape) for key, spec in pipeline.dataset.element_spec.items()}
    assert shapes == {
        fields.IMAGE: (2, 12, 10, 3),
        fields.ORIGINAL_SIZE: (2, 2),
        fields.TRUE_SIZE: (2, 2),
        fields.BOXES: (2, 3, 4),
        fields.CLASSES: (2, 3),
        fields.WEIGHTS: (2, 3),
        fields.IS_CROWD: (2, 3),
        fields.AREA: (2, 3),
        fields.NUM_BOXES: (2,),
        fields.SOURCE_ID: (2,),
        fields.RECORD: (2,),
        NUM_DROPPED_BOXES: (2,),
    }
    (batch,) = take(pipeline, 1)
    assert batch[fields.IMAGE].dtype == "float32"
    assert batch[fields.TRUE_SIZE].numpy().tolist() == [[12, 10]] * 2
    assert batch[fields.ORIGINAL_SIZE].numpy().tolist() == [[6, 8]] * 2
    assert pipeline.num_examples == 7


def test_two_runs_of_the_same_seed_are_equal_and_another_seed_differs(raccoons):
    resizer = FixedShapeResizer(64, 64)
    first = take(train(raccoons, batch_size=8, num_classes=1, resizer=resizer), 7)
    second = take(train(raccoons, batch_size=8, num_classes=1, resizer=resizer), 7)
    other = take(train(raccoons, batch_size=8, num_classes=1, resizer=resizer, seed=4), 1)

    assert_equal(first, second)
    assert first[0][fields.RECORD].numpy().tolist() != other[0][fields.RECORD].numpy().tolist()
    for batch in first:
        image = batch[fields.IMAGE].numpy()
        assert image.min() >= 0
        assert 200 < image.max() <= 255


def test_a_resumed_run_sees_what_the_uninterrupted_one_would_have(raccoons):
    resizer = FixedShapeResizer(64, 64)
    whole = take(train(raccoons, batch_size=8, num_classes=1, resizer=resizer), 9)

    rest = take(
        train(raccoons, batch_size=8, num_classes=1, resizer=resizer, first_example=6 * 8), 3
    )

    assert_equal(whole[6:], rest)


def test_boxes_beyond_the_maximum_are_left_out_counted_and_said_once(records, caplog):
    pipeline = training_dataset(
        records,
        classes=ClassTable.of(None, num_classes=1),
        resizer=RESIZER,
        steps=(),
        options=ReadOptions(num_epochs=1),
        batch_size=1,
        max_boxes=4,
        seed=0,
    )

    batches = pipeline.batches()
    with caplog.at_level(logging.WARNING):
        numbers = {
            batch[fields.SOURCE_ID].numpy()[0].decode(): int(batch[fields.NUM_BOXES][0])
            for batch in batches
        }

    assert numbers == {f"i{i}": min(i, 4) for i in range(7)}
    assert batches.num_dropped_boxes == 1 + 2
    assert len(caplog.records) == 1
    assert "max_number_of_boxes" in caplog.text


def test_evaluation_has_each_image_once_in_order_with_all_its_boxes(records):
    batches = list(evaluate(records, batch_size=3).batches())

    assert [batch[fields.NUM_BOXES].numpy().tolist() for batch in batches] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]
    assert [batch[fields.BOXES].shape[1] for batch in batches] == [2, 5, 6]
    for batch in batches:
        rows = batch[fields.WEIGHTS].numpy().sum(axis=1)
        assert rows.tolist() == batch[fields.NUM_BOXES].numpy().tolist()


def test_more_boxes_than_any_maximum_are_all_there_in_evaluation(serialize, write_records):
    records = open_records([write_records([serialize(boxes=[GOOD] * 120)])])

    (batch,) = evaluate(records).batches()

    assert batch[fields.BOXES].shape == [1, 120, 4]


def test_an_image_without_boxes_still_has_a_row_and_every_batch_size_the_same_images(records):
    singles = list(evaluate(records).batches())
    (together,) = evaluate(records, batch_size=10).batches()

    assert singles[0][fields.BOXES].shape == [1, 1, 4]
    np.testing.assert_array_equal(
        np.concatenate([single[fields.IMAGE] for single in singles]), together[fields.IMAGE]
    )


def test_real_photos_keep_their_original_size(raccoons):
    batches = list(evaluate(raccoons, batch_size=16, num_classes=1).batches())

    assert [len(batch[fields.RECORD]) for batch in batches] == [16, 16, 8]
    sizes = np.concatenate([batch[fields.ORIGINAL_SIZE] for batch in batches])
    assert len({tuple(size) for size in sizes}) > 10
    assert sum(int(batch[fields.NUM_BOXES].numpy().sum()) for batch in batches) == 44


BAD = {
    "inverted": ({"boxes": [GOOD, (0.53, 0.77, 0.6, 0.71)]}, "box 1 .* is inverted"),
    "class": ({"labels": [3]}, "class/label 3 of box 0 is outside 1 to 2"),
    "image": ({"image__encoded": b"II*\0 no photo"}, "image/encoded is no image: TIFF"),
    "lengths": ({"boxes": [GOOD] * 4, "labels": [1]}, "there are 4 boxes, but .*label has 1"),
}


@pytest.mark.parametrize(("others", "reason"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("make", [evaluate, train])
def test_a_bad_record_is_named_with_its_source_id_and_reason(
    serialize, write_records, others, reason, make
):
    sound = [serialize(image__source_id=f"i{i}") for i in range(5)]
    path = write_records([*sound, serialize(**{"image__source_id": "bad.jpg"} | others)])

    with pytest.raises(RecordError, match=rf"a.record:5 \(source_id 'bad.jpg'\): {reason}"):
        take(make(open_records([path]), batch_size=2), 3)


def test_batches_before_a_bad_record_are_delivered(serialize, write_records):
    path = write_records([serialize(), serialize(), serialize(labels=[9])])
    batches = evaluate(open_records([path])).batches()

    next(batches)
    next(batches)
    with pytest.raises(RecordError, match=r"a\.record:2"):
        next(batches)


@pytest.mark.parametrize("make", [evaluate, train])
def test_a_damaged_record_is_named_by_file_and_offset(serialize, write_records, make):
    path = write_records([serialize()] * 5)
    size = Path(path).stat().st_size // 5
    data = bytearray(Path(path).read_bytes())
    data[2 * size + 100] ^= 1
    Path(path).write_bytes(data)

    with pytest.raises(
        RecordError, match=rf"a.record: damaged at byte {2 * size} .* 2 of at least 3"
    ):
        take(make(open_records([path])), 5)


def test_a_file_that_vanishes_is_named(serialize, write_records):
    path = write_records([serialize()])
    pipeline = evaluate(open_records([path]))
    Path(path).unlink()

    with pytest.raises(RecordError, match=r"a record file is gone: .*a\.record"):
        next(pipeline.batches())


def test_a_pipeline_checks_its_own_records(serialize, write_records):
    records = open_records([write_records([serialize(boxes=[GOOD] * 5), serialize(labels=[9])])])

    report = train(records).check()

    assert report.num_images_over_max_boxes == 1
    assert report.num_problem_records == 1
    assert evaluate(records).check().num_images_over_max_boxes == 0
