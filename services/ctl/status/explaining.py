"""`tandem explain`: the story of one checkpoint."""

from __future__ import annotations

from datetime import datetime, timezone

from services.ctl.status.hurrying import Hurry, TooLateError
from services.ctl.status.stories import Story, stories_of
from services.ctl.store.printing import print_json, print_line
from services.ctl.store.runs import damage_explained, open_run
from services.exits import Exit
from tandem.checkpoints.lines import read_line
from tandem.errors import InputError, StoreUnavailableError

_NEAR = 4
_PATIENCE_SECONDS = 20.0


def explain(run: str, step: int, *, as_json: bool) -> int:
    """Prints what became of the checkpoints of a step.

    Raises:
        InputError: it is no run, or nothing is known of that step.
        StoreUnavailableError: the store took too long.
    """
    with Hurry(seconds=_PATIENCE_SECONDS, threads=1) as hurry:
        try:
            stories = hurry.result(hurry.ask(lambda: _known(run, step)))
        except TooLateError:
            raise StoreUnavailableError(
                f"{run} did not answer within {_PATIENCE_SECONDS:.0f} s; tandem status {run} says "
                "what is wrong with it"
            ) from None
    if as_json:
        print_json({"run": run, "step": step, "checkpoints": [_as_json(s) for s in stories]})
        return Exit.FINISHED
    for story in stories:
        print_line(f"checkpoint {story.checkpoint}: {story.state}")
        for event in story.events:
            print_line(f"  {_time(event.at)}  {event.what:<10} {event.text}")
    return Exit.FINISHED


def _known(run: str, step: int) -> list[Story]:
    opened = open_run(run)
    with damage_explained(run):
        stories = stories_of(opened.store, step)
        if not stories:
            known = [c.step for c in read_line(opened.store).checkpoints]
            near = sorted(known, key=lambda other: abs(other - step))[:_NEAR]
            hint = f"; near it are {', '.join(map(str, sorted(near)))}" if near else ""
            raise InputError(f"{run} knows no checkpoint of step {step}{hint}")
    return stories


def _as_json(story: Story) -> dict[str, object]:
    return {
        "checkpoint": str(story.checkpoint),
        "state": story.state,
        "events": [
            {"at": _time(event.at), "what": event.what, "text": event.text}
            for event in story.events
        ],
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
