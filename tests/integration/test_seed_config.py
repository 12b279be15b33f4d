"""The pipeline.config that this project began with, unchanged but for paths and size, on photos."""

import json

import pytest

from services.evaluator.app import run_evaluator
from services.evaluator.settings import EvaluatorSettings
from services.exits import Exit
from services.processes import exit_code_of
from services.signals import StopRequest
from services.trainer.app import run_trainer
from services.trainer.settings import TrainerSettings
from tandem.checkpoints.ledger import EntryOutcome, read_ledger
from tandem.checkpoints.opening import open_store
from tandem.telemetry.logs import LogFields

PHOTOS = "realdata/tfrecords/users/datitran__raccoon_dataset__test.record"
CHECKPOINT = "golden/tf1/mobiledet_cpu_nc1_dm0p25"


@pytest.mark.slow
@pytest.mark.parametrize("version", ["", "v1_format/"], ids=["V2", "V1"])
def test_the_seeds_config_fine_tunes_and_is_evaluated(shared, tmp_path, version):
    labels = tmp_path / "label_map.pbtxt"
    labels.write_text('item { id: 1 name: "raccoon" }')
    reader = f"""label_map_path: "{labels}"
      tf_record_input_reader {{ input_path: "{shared / PHOTOS}" }}"""
    override = f"""
    model {{ ssd {{ feature_extractor {{ depth_multiplier: 0.25 }} }} }}
    train_config {{ batch_size: 2 num_steps: 3
      fine_tune_checkpoint: "{shared / CHECKPOINT}/{version}model.ckpt-400000" }}
    train_input_reader {{ {reader} }}
    eval_input_reader {{ {reader} shuffle: false sample_1_of_n_examples: 10 }}
    """
    given = {
        "run": str(tmp_path / "run"),
        "config": str(shared / "seed" / "ssdlite_mobiledet_cpu_books.config"),
        "override": (override,),
    }
    stop = StopRequest()
    trainer = TrainerSettings(**given, checkpoint_every_n=2)
    assert exit_code_of(lambda: run_trainer(trainer, stop, LogFields())) is Exit.FINISHED
    evaluator = EvaluatorSettings(**given)
    assert exit_code_of(lambda: run_evaluator(evaluator, stop)) is Exit.FINISHED

    report = json.loads((tmp_path / "run" / "train" / "restore-0001.json").read_text())
    assert (report["num_restored"], report["num_variables"]) == (505, 505)
    assert report["skipped"] == report["missing"] == []
    entries = sorted(read_ledger(open_store(given["run"])), key=lambda entry: entry.checkpoint)
    assert [entry.checkpoint.step for entry in entries] == [2, 3]
    assert {entry.outcome for entry in entries} == {EntryOutcome.SCORED}
    assert [entry.images_scored for entry in entries] == [4, 4]
