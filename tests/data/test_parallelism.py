"""Parallel calls without autotuning."""

import os

import tensorflow as tf

from tandem.data.decoding import ClassTable
from tandem.data.parallelism import parallel_calls, without_autotune
from tandem.data.pipelines import evaluation_dataset, training_dataset
from tandem.data.records import open_records
from tandem.data.resizers import FixedShapeResizer
from tandem.data.streams import ReadOptions


def test_as_many_calls_as_this_process_has_processors():
    assert 1 <= parallel_calls() <= (os.cpu_count() or 1)


def test_no_pipeline_waits_for_the_autotuner_when_its_iterator_is_dropped(serialize, write_records):
    # Its thread slept up to a minute, between SIGTERM and the save.
    records = open_records([write_records([serialize(boxes=[(0.2, 0.2, 0.8, 0.8)])])])
    resizer, classes = FixedShapeResizer(8, 8), ClassTable.of(None, num_classes=2)
    training = training_dataset(
        records,
        classes=classes,
        resizer=resizer,
        steps=(),
        options=ReadOptions(),
        batch_size=1,
        max_boxes=1,
        seed=0,
    )
    evaluation = evaluation_dataset(records, classes=classes, resizer=resizer)
    for pipeline in (training, evaluation):
        assert pipeline.dataset.options().autotune.enabled is False


def test_other_options_of_a_dataset_stay():
    options = tf.data.Options()
    options.deterministic = True
    dataset = without_autotune(tf.data.Dataset.range(3).with_options(options))
    assert dataset.options().deterministic is True
    assert dataset.options().autotune.enabled is False
