from dataclasses import dataclass

import tensorflow as tf

from tandem.data.augment.steps import apply_steps


@dataclass(frozen=True)
class Draw:
    key: str

    def apply(self, example, *, seed):
        return example | {self.key: float(tf.random.stateless_uniform([], seed))}


def test_steps_run_in_order_each_with_numbers_of_its_own():
    steps = [Draw("first"), Draw("second")]

    drawn = apply_steps(steps, {}, seed=tf.constant([1, 2], tf.int64))

    assert list(drawn) == ["first", "second"]
    assert drawn["first"] != drawn["second"]
    assert drawn == apply_steps(steps, {}, seed=tf.constant([1, 2], tf.int64))
    assert drawn != apply_steps(steps, {}, seed=tf.constant([1, 3], tf.int64))
