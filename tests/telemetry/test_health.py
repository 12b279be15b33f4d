from tandem.telemetry.health import Health, HealthReport


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_process_is_ok_until_its_patience_is_over():
    clock = Clock()
    health = Health(patience_seconds=10, monotonic=clock)
    clock.now = 10.0
    assert health.report() == HealthReport("ok", "starting", None, 10.0)
    clock.now = 10.1
    assert health.report().status == "stalled"


def test_a_beat_makes_it_ok_again_and_keeps_what_it_does_not_say():
    clock = Clock()
    health = Health(patience_seconds=10, monotonic=clock)
    health.beat(phase="training", step=5)
    clock.now = 60.0
    health.beat()
    clock.now = 61.0
    assert health.report() == HealthReport("ok", "training", 5, 1.0)


def test_a_beat_may_ask_for_more_patience_until_the_next_one():
    clock = Clock()
    health = Health(patience_seconds=10, monotonic=clock)
    health.beat(phase="compiling", patience_seconds=600)
    clock.now = 500.0
    assert health.report().status == "ok"
    health.beat(phase="training", step=1)
    clock.now = 511.0
    assert health.report() == HealthReport("stalled", "training", 1, 11.0)
