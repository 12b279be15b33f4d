import re

import pytest

from tandem.config.fine_tune import CheckpointFiles, CheckpointLayout, find_checkpoint
from tandem.errors import ConfigError, FineTuneError

TABLE_END = bytes.fromhex("57fb808b247547db")


def write_bundle(prefix, shards=1):
    prefix.parent.mkdir(parents=True, exist_ok=True)
    prefix.with_name(prefix.name + ".index").write_bytes(b"keys" + TABLE_END)
    for number in range(shards):
        name = f"{prefix.name}.data-{number:05d}-of-{shards:05d}"
        prefix.with_name(name).write_bytes(b"values")


def write_state(folder, named):
    text = f'model_checkpoint_path: "{named}"\nall_model_checkpoint_paths: "{named}"\n'
    (folder / "checkpoint").write_text(text)


@pytest.fixture
def folder(tmp_path):
    write_bundle(tmp_path / "ckpt-1")
    write_state(tmp_path, "ckpt-1")
    return tmp_path


def bundle(prefix):
    return CheckpointFiles(str(prefix), CheckpointLayout.BUNDLE)


@pytest.mark.parametrize(
    "form",
    ["ckpt-1", "ckpt-1.index", "ckpt-1.data-00000-of-00001", "ckpt-1.meta", "", "checkpoint"],
)  # case C7
def test_every_way_to_name_a_checkpoint_gives_its_prefix(folder, form):
    path = f"{folder}/{form}" if form else str(folder)
    assert find_checkpoint(path) == bundle(folder / "ckpt-1")


def test_a_missing_checkpoint_is_an_error_that_names_those_that_are_there(folder):
    with pytest.raises(FineTuneError) as error:
        find_checkpoint(f"{folder}/ckpt-0")
    assert str(error.value).startswith(f"train_config.fine_tune_checkpoint: '{folder}/ckpt-0' does")
    assert str(error.value).endswith("; its folder has ckpt-1")


def test_a_missing_folder_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FineTuneError, match=rf"'\./nope/ckpt-0' doesn't .*{tmp_path}\)$"):
        find_checkpoint("./nope/ckpt-0")


@pytest.mark.parametrize(
    "named", ["/old/place/run1/model.ckpt-500", "sub/model.ckpt-500", r"C:\\runs\\model.ckpt-500"]
)  # case C13
def test_in_a_moved_folder_the_checkpoint_is_found_by_its_base_name(tmp_path, named):
    write_bundle(tmp_path / "model.ckpt-500")
    write_bundle(tmp_path / "model.ckpt-900")
    write_state(tmp_path, named)
    assert find_checkpoint(str(tmp_path)) == bundle(tmp_path / "model.ckpt-500")


def test_a_checkpoint_that_is_still_at_the_named_place_is_taken_from_there(tmp_path):
    write_bundle(tmp_path / "old" / "ckpt-1")
    write_bundle(tmp_path / "new" / "ckpt-1")
    write_state(tmp_path / "new", tmp_path / "old" / "ckpt-1")
    assert find_checkpoint(str(tmp_path / "new")) == bundle(tmp_path / "old" / "ckpt-1")


def test_a_state_file_with_octal_escapes_is_understood(tmp_path):
    write_bundle(tmp_path / "büro-3")
    write_state(tmp_path, r"b\303\274ro-3")
    assert find_checkpoint(str(tmp_path)) == bundle(tmp_path / "büro-3")


def test_a_state_file_that_names_nothing_there_is_an_error(folder):
    write_state(folder, "ckpt-9")
    with pytest.raises(FineTuneError, match="names 'ckpt-9', which is neither there nor in its"):
        find_checkpoint(str(folder))


@pytest.mark.parametrize(
    "content", ["", "all_model_checkpoint_paths: 'x'", "model_checkpoint_path"]
)
def test_a_broken_state_file_is_an_error(folder, content):
    (folder / "checkpoint").write_text(content)
    with pytest.raises(FineTuneError, match=r"names no checkpoint; its folder has ckpt-1$"):
        find_checkpoint(str(folder))


def test_without_a_state_file_the_highest_step_counts(folder):
    (folder / "checkpoint").unlink()
    write_bundle(folder / "ckpt-9")
    write_bundle(folder / "ckpt-10")
    assert find_checkpoint(str(folder)) == bundle(folder / "ckpt-10")


def test_several_checkpoints_without_steps_are_an_error(folder):
    (folder / "checkpoint").unlink()
    write_bundle(folder / "best")
    with pytest.raises(FineTuneError, match=r"has several checkpoints \(best, ckpt-1\); name one"):
        find_checkpoint(str(folder))


@pytest.mark.parametrize("name", ["checkpoint", "checkpoints"])
def test_a_zoo_model_or_a_run_is_looked_into(tmp_path, name):
    write_bundle(tmp_path / name / "ckpt-0")
    write_state(tmp_path / name, "ckpt-0")
    assert find_checkpoint(str(tmp_path)) == bundle(tmp_path / name / "ckpt-0")


def test_a_folder_without_a_checkpoint_is_an_error(tmp_path):
    with pytest.raises(FineTuneError, match=r"has no checkpoint \(no \.index file\)"):
        find_checkpoint(str(tmp_path))


def test_all_shards_have_to_be_there(tmp_path):
    write_bundle(tmp_path / "ckpt-1", shards=3)
    assert find_checkpoint(f"{tmp_path}/ckpt-1") == bundle(tmp_path / "ckpt-1")
    (tmp_path / "ckpt-1.data-00001-of-00003").unlink()
    with pytest.raises(FineTuneError, match=r"'.*ckpt-1\.data-00001-of-00003' is missing"):
        find_checkpoint(f"{tmp_path}/ckpt-1")


def test_an_index_without_data_is_an_error(folder):
    (folder / "ckpt-1.data-00000-of-00001").unlink()
    with pytest.raises(FineTuneError, match=r"data-00000-of-00001' is missing"):
        find_checkpoint(f"{folder}/ckpt-1")


def test_data_without_an_index_are_an_error(folder):
    (folder / "ckpt-1.index").unlink()
    with pytest.raises(FineTuneError, match=r"ckpt-1\.index' is missing"):
        find_checkpoint(f"{folder}/ckpt-1")


def test_an_index_that_is_cut_off_is_an_error(folder):
    (folder / "ckpt-1.index").write_bytes(b"")
    with pytest.raises(FineTuneError, match="is cut off or not a checkpoint's index"):
        find_checkpoint(f"{folder}/ckpt-1")


def test_a_checkpoint_in_one_file_is_found_by_path_and_by_folder(tmp_path):
    path = tmp_path / "model.ckpt-400000"
    path.write_bytes(b"slices" + TABLE_END)
    write_state(tmp_path, "model.ckpt-400000")
    expected = CheckpointFiles(str(path), CheckpointLayout.SINGLE_FILE)
    assert find_checkpoint(str(path)) == expected
    assert find_checkpoint(str(tmp_path)) == expected


@pytest.mark.parametrize("name", ["saved_model.pb", "weights.h5", "model.ckpt-5"])
def test_another_file_is_no_checkpoint(tmp_path, name):
    (tmp_path / name).write_bytes(b"something else entirely")
    with pytest.raises(FineTuneError, match=rf"{re.escape(name)}' is no TensorFlow checkpoint"):
        find_checkpoint(str(tmp_path / name))


def test_a_placeholder_is_a_config_error():
    with pytest.raises(ConfigError, match="placeholder"):
        find_checkpoint("PATH_TO_BE_CONFIGURED/model.ckpt")


@pytest.mark.parametrize("name", ["we[ird]-1", "star*-1", "sp ace-1"])
def test_a_name_with_odd_characters_is_found(tmp_path, name):
    write_bundle(tmp_path / name)
    assert find_checkpoint(str(tmp_path / name)) == bundle(tmp_path / name)


def test_real_checkpoints_are_found(shared):
    golden = shared / "golden" / "tf1" / "mobiledet_cpu_nc1_dm0p25"
    assert find_checkpoint(str(golden)) == bundle(golden / "model.ckpt-400000")
    old = golden / "v1_format"
    assert find_checkpoint(str(old)) == CheckpointFiles(
        str(old / "model.ckpt-400000"), CheckpointLayout.SINGLE_FILE
    )
    pedestrian = shared / "realdata" / "models" / "pedestrian_ssdlite_mobilenet_v2"
    assert find_checkpoint(str(pedestrian)) == bundle(pedestrian / "model.ckpt")
