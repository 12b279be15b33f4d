"""Which files of a `model_dir` make a whole checkpoint."""

from tandem.checkpoints.adopted import AdoptedCheckpoint, adopted_checkpoints


def test_checkpoints_of_both_generations_are_found_by_number():
    found = adopted_checkpoints(
        [
            "checkpoint",
            "graph.pbtxt",
            "model.ckpt-400.data-00000-of-00001",
            "model.ckpt-400.index",
            "model.ckpt-400.meta",
            "model.ckpt-1000.data-00000-of-00001",
            "model.ckpt-1000.index",
            "ckpt-3.data-00000-of-00002",
            "ckpt-3.data-00001-of-00002",
            "ckpt-3.index",
            "eval_0/events.out.tfevents.1",
        ]
    )
    assert list(found) == [(3, 0), (400, 0), (1000, 0)]
    assert found[3, 0] == AdoptedCheckpoint(
        "ckpt-3",
        ("ckpt-3.index", "ckpt-3.data-00000-of-00002", "ckpt-3.data-00001-of-00002"),
    )


def test_one_that_is_being_written_does_not_count():
    assert not adopted_checkpoints(["ckpt-3.data-00000-of-00001"])
    assert not adopted_checkpoints(["ckpt-3.index"])
    assert not adopted_checkpoints(["ckpt-3.index", "ckpt-3.data-00001-of-00002"])
    assert not adopted_checkpoints(["ckpt-3.index", "ckpt-4.data-00000-of-00001"])


def test_files_in_deeper_folders_or_without_a_number_do_not_count():
    data = "data-00000-of-00001"
    assert not adopted_checkpoints(["a/ckpt-3.index", f"a/ckpt-3.{data}"])
    assert not adopted_checkpoints(["model.ckpt.index", f"model.ckpt.{data}"])
    assert not adopted_checkpoints(["ckpt-03.index", f"ckpt-03.{data}"])


def test_of_files_out_of_a_run_the_step_counts_not_the_attempt():
    data = "data-00000-of-00001"
    found = adopted_checkpoints(
        ["ckpt-1000-2.index", f"ckpt-1000-2.{data}", "ckpt-2000-2.index", f"ckpt-2000-2.{data}"]
    )
    assert {checkpoint: adopted.prefix for checkpoint, adopted in found.items()} == {
        (1000, 0): "ckpt-1000-2",
        (2000, 0): "ckpt-2000-2",
    }
