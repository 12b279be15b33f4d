"""`tandem store ls`: the state of a run at a glance."""

from __future__ import annotations

from datetime import datetime, timezone

from rich.console import Console

from services.ctl.store.facts import read_run_facts
from services.ctl.store.listing import listing, listing_json
from services.ctl.store.printing import print_json
from services.ctl.store.runs import open_run
from services.exits import Exit


def show(run: str, *, as_json: bool, console: Console) -> Exit:
    """Prints the state of a run.

    Raises:
        InputError: it is no run.
    """
    opened = open_run(run)
    facts = read_run_facts(opened.store, opened.run)
    if as_json:
        print_json(listing_json(facts))
    else:
        console.print(listing(facts, now=datetime.now(timezone.utc)))
    return Exit.FINISHED
