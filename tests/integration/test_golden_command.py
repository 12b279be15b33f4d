"""`scripts/golden`: lines, verdicts and exit codes, in this process."""

import shutil

import numpy as np
import pytest

from services.ctl.golden.command import main

CASE = "mobiledet_cpu_nc1_dm0p25"


@pytest.fixture
def copied(shared, tmp_path):
    """A writable copy of a case without its checkpoints, somewhere else."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("pipeline.config", "variables.json", "golden.npz"):
        shutil.copyfile(shared / "golden" / "tf1" / CASE / name, folder / name)
    return folder


def test_a_case_that_lies_elsewhere_passes_with_a_line_for_every_output(copied, capsys):
    assert main([str(copied)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"== {copied}"
    assert all(" ok" in line for line in lines[1:-1])
    assert lines[-1] == f"{len(lines) - 2} outputs compared, 0 differ"


def test_a_changed_output_is_named_and_gives_1(copied, capsys):
    with np.load(copied / "golden.npz") as stored:
        arrays = dict(stored)
    arrays["box_encodings"] = arrays["box_encodings"] * np.float32(1.001)
    np.savez(copied / "golden.npz", **arrays)
    assert main([str(copied)]) == 1
    output = capsys.readouterr().out
    different = [line for line in output.splitlines() if "DIFFERS" in line]
    assert [line.split()[0] for line in different] == ["box_encodings"]
    assert output.rstrip().endswith("1 differ")


def test_what_cannot_be_built_is_said_and_is_no_difference(shared, capsys):
    assert main([str(shared / "golden" / "tf1" / "mobilenet_v1_nc1_dm0p25")]) == 0
    assert "cannot build: model.ssd.feature_extractor.type" in capsys.readouterr().out


def test_a_folder_that_is_no_case_gives_2_and_says_what_it_lacks(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "it has no pipeline.config" in capsys.readouterr().err


def test_a_broken_file_gives_2(copied, capsys):
    (copied / "variables.json").write_text("{")
    assert main([str(copied)]) == 2
    assert "variables.json or golden.npz can't be read" in capsys.readouterr().err


def test_a_case_without_training_outputs_is_compared_in_the_rest(copied, capsys):
    with np.load(copied / "golden.npz") as stored:
        arrays = {n: v for n, v in stored.items() if not n.startswith(("train_", "after1", "det_"))}
    np.savez(copied / "golden.npz", **arrays)
    assert main([str(copied)]) == 0
    output = capsys.readouterr().out
    assert "eval_Loss_total_loss" in output
    assert "train_" not in output


def test_a_case_without_predictions_gives_2(copied, capsys):
    with np.load(copied / "golden.npz") as stored:
        arrays = {name: value for name, value in stored.items() if name != "box_encodings"}
    np.savez(copied / "golden.npz", **arrays)
    assert main([str(copied)]) == 2
    assert "golden.npz lacks box_encodings" in capsys.readouterr().err
