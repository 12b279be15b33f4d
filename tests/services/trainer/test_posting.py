from services.trainer.loop import StepFacts
from services.trainer.pace import Pace
from services.trainer.posting import Posts


class Beats:
    def __init__(self):
        self.posts = []

    def post(self, phase, step=None, **facts):
        self.posts.append((phase, step, facts))


class Saver:
    committed_step = 4
    num_pending = 1
    num_failures = 2


def posts_of(beats, *, seconds=(), last_step=20):
    pace = Pace()
    for took in seconds:
        pace.add(took)
    return Posts(beats, pace, Saver(), last_step=last_step, checkpoint_every_n=4)


def test_every_post_says_how_training_and_saving_get_on():
    beats = Beats()
    posts = posts_of(beats, seconds=[60.0, 2.0, 2.0])
    losses = {"Loss/total_loss": 1.5}
    posts.after_step(
        StepFacts(10, losses, 0.1, gradient_norm=1.0, num_images=8, seconds=2.0, data_seconds=0.1)
    )
    posts.say("saving")
    expected = {
        "last_step": 20,
        "total_loss": 1.5,
        "steps_per_second": 0.5,
        "eta_seconds": 20.0,
        "median_step_seconds": 2.0,
        "stall_budget_seconds": 300.0,
        "checkpoint_every_n": 4,
        "save_interval_seconds": 8.0,
        "committed_step": 4,
        "pending_saves": 1,
        "save_failures": 2,
    }
    assert beats.posts == [("training", 10, expected), ("saving", 10, expected)]


def test_what_is_not_known_yet_is_none():
    beats = Beats()
    posts_of(beats, last_step=None).say("restoring")
    ((phase, step, facts),) = beats.posts
    assert (phase, step) == ("restoring", None)
    assert {name for name, value in facts.items() if value is None} == {
        *("last_step", "total_loss", "steps_per_second", "eta_seconds"),
        *("median_step_seconds", "stall_budget_seconds", "save_interval_seconds"),
    }
