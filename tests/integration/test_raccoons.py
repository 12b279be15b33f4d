"""The main job on real photos: from pedestrians to raccoons, as the README's worked example."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.checkpoints.ledger import read_ledger
from tandem.checkpoints.opening import open_store
from tandem.data.splits import split_records
from tandem.evaluation.coco_metrics import TAGS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "raccoon" / "pipeline.config"
RECORDS = "realdata/tfrecords/users/datitran__raccoon_dataset__test.record"
PEDESTRIANS = "realdata/models/pedestrian_ssdlite_mobilenet_v2"


@pytest.fixture
def example(shared, tmp_path):
    """Flags of both processes for the example's config on thirty photos, ten held out."""
    split = split_records([str(shared / RECORDS)], out_dir=tmp_path, eval_count=10)
    assert (split.num_train, split.num_evaluation) == (30, 10)
    override = f"""
    train_config {{ fine_tune_checkpoint: "{shared / PEDESTRIANS}" }}
    train_input_reader {{ label_map_path: "{EXAMPLE.with_name("label_map.pbtxt")}"
      tf_record_input_reader {{ input_path: "{split.train}" }} }}
    eval_input_reader {{ label_map_path: "{EXAMPLE.with_name("label_map.pbtxt")}"
      tf_record_input_reader {{ input_path: "{split.evaluation}" }} }}
    """
    return ["--config", str(EXAMPLE), "--override", override]


def start(module, *arguments):
    return subprocess.Popen([sys.executable, "-m", f"services.{module}", *arguments])


@pytest.mark.slow
def test_fine_tuning_finds_raccoons_where_the_checkpoint_did_not(example, tmp_path, shared):
    """A short version: the README's takes 400 steps and decays its rate over them."""
    command = ["-m", "services.ctl", "evaluate", *example, "--checkpoint", shared / PEDESTRIANS]
    printed = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True
    ).stdout
    before = float(printed.splitlines()[2].split()[2])
    run = str(tmp_path / "run")
    steps = ["--num-train-steps", "200", "--checkpoint-every-n", "50"]
    trainer = start("trainer", "--run", run, *example, *steps)
    evaluator = start("evaluator", "--run", run, *example, "--poll-interval", "1")
    try:
        assert trainer.wait(1200) == 0
        assert evaluator.wait(300) == 0
    finally:
        for process in (trainer, evaluator):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
    entries = sorted(read_ledger(open_store(run)), key=lambda entry: entry.checkpoint)
    found = {entry.checkpoint.step: entry.metrics[TAGS["ap50"]] for entry in entries}
    print(f"AP@0.5: {before} before fine-tuning; by step {found}")
    assert sorted(found) == [50, 100, 150, 200]
    assert max(found.values()) >= 0.5 > before
    assert (tmp_path / "run" / "train" / "restore-0001.json").exists()
