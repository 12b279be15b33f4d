import pytest

from tandem.checkpoints.auditing import audit
from tandem.checkpoints.bests import write_best
from tandem.checkpoints.contents import name_of, record_type_of
from tandem.checkpoints.fetching import fetch_checkpoint
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.pins import pin
from tandem.checkpoints.records import SCHEMA, decode, encode
from tandem.checkpoints.runs import ensure_run
from tandem.checkpoints.tries import record_try
from tandem.errors import CheckpointDamagedError, RunConflictError
from tests.checkpoints.actors import METRIC, VAL, Trainer, entry
from tests.checkpoints.hooked_store import HookedStore

FIRST = CheckpointId(1, 1)


@pytest.fixture
def whole_run(store, clock, new_trainer, new_evaluator):
    """A run with a record of every kind."""
    ensure_run(store, surroundings=clock.surroundings)
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)
    evaluator = new_evaluator("e1")
    record_try(store, FIRST, VAL, recorder="e1", surroundings=clock.surroundings)
    evaluator.acquire(CheckpointId(2, 1))
    evaluator.score(FIRST, 0.5)
    write_best(store, entry(FIRST, metric=0.5), metric=METRIC, surroundings=clock.surroundings)
    pin(store, FIRST, reason="", by="ann", surroundings=clock.surroundings)
    Heartbeat(store, TRAINER, attempt=1, surroundings=clock.surroundings).beat("training", 2)
    trainer.finish(2)
    for name in ("pipeline.config", "train/events.1", "eval_val/events.1", "logs/trainer.log"):
        store.create(name, b"of others")
    return store


def _findings(store):
    return [(f.object, f.expected, f.found) for f in audit(store).findings]


def test_a_sound_run_has_no_findings(whole_run):
    told = []
    found = audit(whole_run, on_progress=told.append)
    assert found.findings == ()
    assert found.num_checkpoints == 2
    assert found.num_objects == len(whole_run.list(""))
    assert found.uncommitted == ()
    sizes = [whole_run.stat(name).size for name in whole_run.list("checkpoints/ckpt-")]
    assert sum(sizes) < found.num_bytes == told[-1].num_bytes


def test_it_writes_nothing(whole_run):
    done = []
    audit(HookedStore(whole_run, before=lambda operation, name: done.append(operation)))
    assert set(done) <= {"get", "read", "stat", "list"}


def test_every_flipped_bit_of_a_run_is_found(whole_run, damage):
    names = [n for n in whole_run.list("") if not n.startswith(("train/", "eval_", "logs/"))]
    names = [n for n in names if n not in ("pipeline.config", "checkpoints/checkpoint")]
    assert len(names) == 15
    for name in names:
        sound = whole_run.get(name).data
        flipped = bytearray(sound)
        flipped[len(flipped) // 2] ^= 1
        damage(name, bytes(flipped))
        assert name in [f.object for f in audit(whole_run).findings], name
        damage(name, sound)
    assert audit(whole_run).findings == ()


def test_a_finding_says_what_was_expected_what_was_found_and_what_to_do(whole_run, damage):
    name = "checkpoints/ckpt-1-1.index"
    size = whole_run.stat(name).size
    damage(name, b"other")
    (finding,) = audit(whole_run).findings
    assert finding.object == name
    assert finding.expected.startswith(f"{size} bytes, crc32c ")
    assert finding.found.startswith("5 bytes, crc32c ")
    assert "bring it back from a copy" in finding.advice


def test_a_missing_file_is_found_also_of_one_that_is_being_retired(whole_run):
    name = "checkpoints/ckpt-1-1.index"
    whole_run.delete(name, generation=whole_run.stat(name).generation)
    assert [(o, f) for o, _, f in _findings(whole_run)] == [(name, "it is missing")]


def test_a_checkpoint_that_is_retired_meanwhile_is_no_finding(store, new_trainer):
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)
    ensure_run(store)
    done = []

    def retire(operation, name):
        if operation == "read" and not done:
            done.append(name)
            trainer.retire()

    assert audit(HookedStore(store, before=retire)).findings == ()
    assert done == ["checkpoints/ckpt-1-1.data-00000-of-00001"]


def test_a_void_checkpoint_is_verified_too(whole_run, damage, new_trainer):
    later = new_trainer()
    later.save(3)
    for name in whole_run.list("checkpoints/ckpt-3-2."):
        if not name.endswith(".commit.json"):
            whole_run.create(name.replace("3-2", "4-1"), whole_run.get(name).data)
    commit = decode(
        whole_run.get("checkpoints/ckpt-3-2.commit.json").data,
        record_type_of("checkpoints/ckpt-3-2.commit.json"),
        name="it",
    ).model_copy(update={"checkpoint": CheckpointId(4, 1)})
    whole_run.create("checkpoints/ckpt-4-1.commit.json", encode(commit))
    assert _findings(whole_run) == []
    damage("checkpoints/ckpt-4-1.index", b"x")
    assert [o for o, *_ in _findings(whole_run)] == ["checkpoints/ckpt-4-1.index"]


@pytest.mark.parametrize(
    ("name", "under"),
    [
        ("attempts/0001.json", "attempts/0002.json"),
        ("checkpoints/ckpt-1-1.commit.json", "checkpoints/ckpt-9-1.commit.json"),
        ("evaluations/val/1-1-d1.json", "evaluations/val/2-1-d1.json"),
        ("evaluations/val/1-1-d1.json", "evaluations/night/1-1-d1.json"),
        ("evaluations/val/1-1-d1.try-1.json", "evaluations/val/1-1-d1.try-2.json"),
        ("pins/ckpt-1-1.json", "pins/ckpt-2-1.json"),
        ("leases/ckpt-2-1/val.json", "leases/ckpt-2-1/export.json"),
        ("best/val.json", "best/night.json"),
        ("heartbeats/trainer.json", "heartbeats/evaluator-a.json"),
    ],
)
def test_a_record_under_another_name_is_found(whole_run, name, under):
    whole_run.create(under, whole_run.get(name).data)
    assert (under, "what its name says", f"what {name} is to say") in _findings(whole_run)


@pytest.mark.parametrize(
    "name",
    ["model.ckpt-1.index", "checkpoints/ckpt-5.index", "notes.txt", "evaluations/val/x.json"],
)
def test_objects_of_something_else_are_found(whole_run, name):
    whole_run.create(name, b"x")
    assert [(o, f) for o, _, f in _findings(whole_run)] == [(name, "one of something else")]


def test_a_file_that_the_commit_does_not_know_is_found(whole_run):
    name = "checkpoints/ckpt-1-1.data-00001-of-00002"
    whole_run.create(name, b"x")
    assert [o for o, *_ in _findings(whole_run)] == [name]


def test_data_without_a_commit_are_told_but_are_no_finding(whole_run):
    whole_run.create("checkpoints/ckpt-9-1.index", b"x")
    found = audit(whole_run)
    assert (found.findings, found.uncommitted) == ((), (CheckpointId(9, 1),))


def test_a_state_file_that_names_what_can_not_be_read_is_found(whole_run):
    name = "checkpoints/checkpoint"
    text = whole_run.get(name).data + b'all_model_checkpoint_paths: "ckpt-9-1"\n'
    whole_run.replace(name, text, generation=whole_run.stat(name).generation)
    assert [(o, f) for o, _, f in _findings(whole_run)] == [(name, "it names ckpt-9-1")]


def test_the_state_file_may_name_what_waits_for_a_reader_before_it_goes(
    store, new_trainer, new_evaluator
):
    ensure_run(store)
    trainer = new_trainer()
    first = trainer.save(1)
    trainer.save(2)

    def take_a_lease(operation, name):
        if operation == "create" and name.endswith(".retire.json"):
            new_evaluator("e1").leases.acquire(first, "export")

    trainer.retirer_on(HookedStore(store, before=take_a_lease)).run_pass()
    assert f"checkpoints/ckpt-{first}.retire.json" in store.list("checkpoints/")
    assert f'"ckpt-{first}"' in store.get("checkpoints/checkpoint").data.decode()
    assert audit(store).findings == ()


def test_each_look_of_an_audit_may_meet_a_whole_pass_of_retiring(new_store, clock, tmp_path):
    def run_with(pass_at):
        store = new_store(f"run-{pass_at}")
        ensure_run(store)
        trainer = Trainer(store, clock, tmp_path / "scratch")
        for step in (1, 2, 3):
            trainer.save(step)
        looks = []

        def retire(operation, name):
            looks.append(name)
            if len(looks) == pass_at:
                trainer.retire()

        found = audit(HookedStore(store, before=retire)).findings
        return found, len(looks)

    _, num_looks = run_with(0)
    for pass_at in range(1, num_looks + 1):
        assert run_with(pass_at)[0] == (), pass_at


def test_a_missing_identity_is_found(whole_run):
    whole_run.delete("run.json", generation=whole_run.stat("run.json").generation)
    assert _findings(whole_run) == [("run.json", "the run's identity", "it is missing")]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": 1e999}'])
def test_an_identity_that_is_no_record_is_found(whole_run, damage, content):
    damage("run.json", content)
    assert [o for o, *_ in _findings(whole_run)] == ["run.json"]


def test_a_quarantine_is_found_when_the_bytes_are_back(whole_run, damage, tmp_path):
    name = "checkpoints/ckpt-1-1.index"
    sound = whole_run.get(name).data
    damage(name, b"x")
    with pytest.raises(CheckpointDamagedError):
        fetch_checkpoint(whole_run, FIRST, tmp_path / "fetched", reader="e1")
    assert [o for o, *_ in _findings(whole_run)] == ["checkpoints/checkpoint", name]
    damage(name, sound)
    found = {f.object: f for f in audit(whole_run).findings}
    assert "all its bytes are those committed" in found["checkpoints/ckpt-1-1.damaged.json"].found


def test_an_entry_that_contradicts_its_commit_is_found(store, new_trainer):
    ensure_run(store)
    second = new_trainer().save(2)
    said = entry(second, metric=0.5, samples_seen=99, config_digest="c1")
    store.create(name_of(said), encode(said))
    ((name, expected, found),) = _findings(store)
    assert name == "evaluations/val/2-1-d1.json"
    assert expected == "config c0, 16 samples, by the commit"
    assert found == "config c1, 99 samples"


def test_a_missing_claim_is_found(whole_run):
    name = "attempts/0001.json"
    whole_run.delete(name, generation=whole_run.stat(name).generation)
    assert (name, "the claim of an attempt", "it is missing") in _findings(whole_run)


def test_a_record_of_a_newer_version_is_refused(whole_run, damage, monkeypatch):
    name = "attempts/0001.json"
    record = decode(whole_run.get(name).data, record_type_of(name), name=name)
    monkeypatch.setattr("tandem.checkpoints.records.SCHEMA", SCHEMA + 1)
    newer = encode(record)
    monkeypatch.undo()
    damage(name, newer)
    with pytest.raises(RunConflictError, match="newer version of Tandem"):
        audit(whole_run)
