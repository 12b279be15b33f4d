import runpy
import sys
from pathlib import Path

import pytest

from tandem.data.frames import read_records
from tandem.data.splits import choose_held_out, split_records
from tandem.errors import DataError

TWENTY = [f"record {i:02d}".encode() for i in range(20)]


def contents(path):
    return [frame.data for frame in read_records(str(path))]


def test_every_record_goes_to_one_side_in_order(write_records, tmp_path):
    paths = [write_records(TWENTY[:8], name="a"), write_records(TWENTY[8:], name="b")]

    split = split_records(paths, out_dir=tmp_path / "out", eval_count=5)

    train, evaluation = contents(split.train), contents(split.evaluation)
    assert (split.num_train, split.num_evaluation) == (len(train), len(evaluation)) == (15, 5)
    assert sorted(train + evaluation) == TWENTY
    assert train == sorted(train)
    assert evaluation == sorted(evaluation)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "eval.record",
        "train.record",
    ]


def test_the_same_seed_holds_out_the_same_and_not_one_end_of_the_file():
    held_out = choose_held_out(100, num_held_out=20, seed=0)

    assert held_out == choose_held_out(100, num_held_out=20, seed=0)
    assert held_out != choose_held_out(100, num_held_out=20, seed=1)
    assert min(held_out) < 30
    assert max(held_out) > 70


def test_a_fraction_is_rounded(write_records, tmp_path):
    split = split_records([write_records(TWENTY[:9])], out_dir=tmp_path / "out", eval_fraction=0.25)

    assert (split.num_train, split.num_evaluation) == (7, 2)


@pytest.mark.parametrize("count", [0, 20, 21])
def test_an_empty_side_is_refused_and_nothing_written(write_records, tmp_path, count):
    with pytest.raises(DataError, match="expected 1 to 19"):
        split_records([write_records(TWENTY)], out_dir=tmp_path / "out", eval_count=count)

    assert not (tmp_path / "out").exists()


def test_the_input_is_never_overwritten(write_records, tmp_path):
    path = write_records(TWENTY, name="train.record")

    with pytest.raises(DataError, match="choose another folder"):
        split_records([path], out_dir=tmp_path, eval_count=5)
    assert contents(path) == TWENTY


def test_damage_leaves_no_half_file(write_records, tmp_path):
    path = Path(write_records(TWENTY))
    data = bytearray(path.read_bytes())
    data[-8] ^= 1
    path.write_bytes(data)

    with pytest.raises(DataError, match="damaged"):
        split_records([str(path)], out_dir=tmp_path / "out", eval_count=5)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("eval_count", "code", "said"),
    [
        ("5", 0, "out/eval.record: 5 records"),
        ("20", 2, "split_records: 20 of 20 records can't be held out"),
    ],
)
def test_the_script_says_what_it_wrote_or_what_is_wrong(
    write_records, tmp_path, monkeypatch, capsys, eval_count, code, said
):
    script = str(Path(__file__).resolve().parents[2] / "scripts/split_records")
    options = ["--out-dir", str(tmp_path / "out"), "--eval-count", eval_count]
    monkeypatch.setattr(sys, "argv", [script, write_records(TWENTY), *options])
    monkeypatch.setattr(sys, "path", list(sys.path))

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(script, run_name="__main__")

    output = capsys.readouterr()
    assert ended.value.code == code
    assert said in (output.out if code == 0 else output.err)
