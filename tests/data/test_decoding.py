import gc
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem import fields
from tandem.data.annotations import examine
from tandem.data.decoding import ClassTable, decode_example, why_refused

IDS = {"a": 1, "b": 2}
GOOD = (0.25, 0.125, 0.75, 0.625)


def decode(serialized, *, label_ids=None, num_classes=2):
    classes = ClassTable.of(label_ids, num_classes=num_classes)
    return decode_example(tf.constant(serialized), record=tf.constant("f:0"), classes=classes)


def is_decoded(serialized, **options):
    try:
        decode(serialized, **options)
    except tf.errors.InvalidArgumentError:
        return False
    return True


def test_an_example_has_everything_a_record_says(serialize):
    example = decode(
        serialize(
            boxes=[GOOD, (0, 0, 1, 1)],
            texts=["b", "a"],
            image__object__area=[12.0, 48.0],
            image__object__is_crowd=[0, 1],
            image__object__weight=[1.0, 0.5],
        ),
        label_ids=IDS,
    )

    assert example[fields.IMAGE].shape == [6, 8, 3]
    assert example[fields.IMAGE].dtype == tf.uint8
    assert example[fields.IMAGE].numpy().ravel().tolist() == list(range(144))
    assert example[fields.ORIGINAL_SIZE].numpy().tolist() == [6, 8]
    assert example[fields.BOXES].numpy().tolist() == [list(GOOD), [0, 0, 1, 1]]
    assert example[fields.CLASSES].numpy().tolist() == [1, 0]
    assert example[fields.AREA].numpy().tolist() == [12.0, 48.0]
    assert example[fields.IS_CROWD].numpy().tolist() == [False, True]
    assert example[fields.WEIGHTS].numpy().tolist() == [1.0, 0.5]
    assert example[fields.NUM_BOXES].numpy() == 2
    assert example[fields.SOURCE_ID].numpy() == b"a.png"
    assert example[fields.RECORD].numpy() == b"f:0"


def test_what_a_record_leaves_out_has_its_default(serialize):
    example = decode(serialize(boxes=[GOOD, GOOD], labels=[1, 2], image__source_id=None))

    assert example[fields.WEIGHTS].numpy().tolist() == [1.0, 1.0]
    assert example[fields.AREA].numpy().tolist() == [0.0, 0.0]
    assert example[fields.IS_CROWD].numpy().tolist() == [False, False]
    assert example[fields.SOURCE_ID].numpy() == b""


def test_an_image_without_objects_has_no_rows(serialize):
    example = decode(serialize(boxes=[]), label_ids=IDS)

    assert example[fields.BOXES].shape == [0, 4]
    assert example[fields.CLASSES].shape == [0]
    assert example[fields.NUM_BOXES].numpy() == 0


def test_the_text_wins_and_the_label_serves_where_there_is_none(serialize):
    assert decode(serialize(texts=["b"], labels=[1]), label_ids=IDS)[fields.CLASSES].numpy() == [1]
    assert decode(serialize(labels=[2]), label_ids=IDS)[fields.CLASSES].numpy() == [1]
    assert decode(serialize(texts=["b"], labels=[1]))[fields.CLASSES].numpy() == [0]


def test_a_small_overhang_is_clipped(serialize):
    example = decode(serialize(boxes=[(-0.05, 0.1, 0.5, 649 / 640)]))

    np.testing.assert_allclose(example[fields.BOXES], [[0, 0.1, 0.5, 1]])


def test_the_same_comes_out_inside_tf_data_also_after_the_table_is_forgotten(serialize):
    def dataset():
        classes = ClassTable.of(IDS, num_classes=2)
        return tf.data.Dataset.from_tensors(serialize(texts=["b"])).map(
            lambda s: decode_example(s, record=tf.constant("f:0"), classes=classes)
        )

    made = dataset()
    gc.collect()
    inside, eager = made.get_single_element(), decode(serialize(texts=["b"]), label_ids=IDS)

    assert made.element_spec[fields.BOXES].shape.as_list() == [None, 4]
    for key, value in eager.items():
        np.testing.assert_array_equal(inside[key], value)


COORDINATE = st.one_of(
    st.floats(-0.25, 1.25, width=32, allow_subnormal=False),
    st.sampled_from([0.0, 0.5, 1.0, -0.1, 1.1, 2.0, 447.0, math.nan, math.inf]),
)
COUNT = st.integers(0, 3)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_graph_refuses_exactly_what_the_examination_does(serialize, data):
    boxes = data.draw(st.lists(st.tuples(*[COORDINATE] * 4), max_size=2))
    sound = data.draw(st.booleans())
    boxes = [GOOD] * len(boxes) if sound else boxes
    count = data.draw(st.sampled_from([len(boxes), len(boxes), 0, 1]))
    record = serialize(
        boxes=boxes,
        labels=data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)),
        texts=data.draw(
            st.one_of(st.none(), st.lists(st.sampled_from(["a", "b", "c"]), max_size=2))
        ),
        image__object__weight=data.draw(
            st.lists(st.sampled_from([0.5, 1.0, -1.0, math.nan]), max_size=2)
        ),
        image__object__is_crowd=data.draw(st.lists(st.integers(0, 1), max_size=2)),
        image__format=data.draw(st.sampled_from([b"png", b"jpg", b"", b"raw"])),
    )
    label_ids = data.draw(st.sampled_from([None, IDS]))

    found = examine(record, label_ids=label_ids, num_classes=2)

    assert is_decoded(record, label_ids=label_ids) == (not found.problems), found.problems


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        (
            {"image__encoded": b"<html>no image</html>"},
            "image/encoded is no image: HTML or XML; expected one of JPEG",
        ),
        (
            {"image__encoded": b"\x89PNG\r\n\x1a\n" + bytes(20)},
            "image/encoded is a PNG of 28 bytes that is cut short or damaged",
        ),
        ({"image__encoded": b""}, "image/encoded is empty"),
        ({"labels": [3]}, "class/label 3 of box 0 is outside 1 to 2"),
    ],
)
def test_a_refusal_is_explained_with_the_source_id(serialize, others, reason):
    classes = ClassTable.of(None, num_classes=2)

    assert not is_decoded(serialize(**others))
    text = why_refused(serialize(**others), classes=classes)
    assert text.startswith("(source_id 'a.png'): ")
    assert reason in text
    assert why_refused(serialize(), classes=classes) == ""


def test_real_records_decode(shared):
    folder = shared / "realdata/tfrecords"
    pets = tf.data.TFRecordDataset(str(folder / "upstream/pets_examples.record"))
    classes = [
        int(decode(s, num_classes=37)[fields.CLASSES][0]) + 1 for s in pets.as_numpy_iterator()
    ]
    assert {11, 33, 18, 22} < set(classes)

    datumaro = folder / "datumaro/tf_detection_api_dataset"
    for name, num_boxes in [("test", 0), ("val", 1)]:
        record = next(
            tf.data.TFRecordDataset(str(datumaro / f"{name}.tfrecord")).as_numpy_iterator()
        )
        assert int(decode(record, num_classes=5)[fields.NUM_BOXES]) == num_boxes
    unlabelled = next(tf.data.TFRecordDataset(str(datumaro / "train.tfrecord")).as_numpy_iterator())
    assert not is_decoded(unlabelled, num_classes=5)
    assert "class/label 0 of box 2" in why_refused(unlabelled, classes=ClassTable(5))
