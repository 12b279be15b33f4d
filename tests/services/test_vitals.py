import socket

import tandem
from services.vitals import Vitals, software
from tandem.checkpoints.measuring import RecentRequests
from tandem.errors import StoreUnavailableError
from tests.checkpoints.actors import FakeClock


def vitals_of(requests=None, **more):
    runs = software(image="registry/tandem@sha256:ab", tensorflow="2.21")
    surroundings = FakeClock().surroundings
    return Vitals(runs, requests or RecentRequests(), surroundings=surroundings, **more)


def test_the_software_is_the_image_or_what_is_installed():
    assert software(image="i", tensorflow="2.21") == (tandem.__version__, "i")
    text = f"tandem {tandem.__version__}, tensorflow 2.21"
    assert software(image=None, tensorflow="2.21") == (tandem.__version__, text)


def test_every_beat_says_who_runs_where_and_how_the_store_answers():
    requests = RecentRequests(monotonic=lambda: 0.0)
    requests("get", "ok", 0.25)
    requests("list", "error", 0.75)
    facts = vitals_of(requests, host="pod-1", principal=lambda: "me@project").facts()
    assert facts == {
        "image": "registry/tandem@sha256:ab",
        "version": tandem.__version__,
        "host": "pod-1",
        "principal": "me@project",
        "store_requests": 2,
        "store_errors": 1,
        "store_p50_seconds": 0.75,
        "store_p99_seconds": 0.75,
    }
    assert vitals_of().facts()["host"] == socket.gethostname()


def test_the_newest_trouble_is_told_in_one_line():
    vitals = vitals_of()
    assert "last_error" not in vitals.facts()
    vitals.note(ValueError("first"))
    vitals.note(StoreUnavailableError("gs://b/r:\n" + 1000 * "x"))
    facts = vitals.facts()
    assert facts["last_error"].startswith("gs://b/r: xxx")
    assert len(facts["last_error"]) == 300
    assert facts["last_error_kind"] == "StoreUnavailableError"
    assert facts["last_error_at"] == "2026-01-31T12:00:00Z"
    vitals.note(MemoryError())
    assert vitals.facts()["last_error"] == "MemoryError"
