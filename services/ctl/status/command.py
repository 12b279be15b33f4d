"""`tandem status`: looks at one run or at all of a namespace, and says how they are."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from rich.console import Console, Group
from rich.live import Live

from services.ctl.status import reports
from services.ctl.status.fitting import fitted
from services.ctl.status.hurrying import Hurry, seconds_since_start
from services.ctl.status.looking import look_at
from services.ctl.store.printing import print_json
from services.ctl.streams import PlainConsole, escaped_lines
from tandem.checkpoints.gcs_locations import is_remote
from tandem.errors import ClusterError, ConfigError, TandemError
from tandem.status.facts import Access, AccessProblem, ClusterFacts, RunFacts
from tandem.status.findings import Health
from tandem.status.verdicts import Verdict, verdict_on

EXIT_CODES = {Health.HEALTHY: 0, Health.DEGRADED: 1, Health.BROKEN: 2, Health.UNKNOWN: 3}

# An answer comes within two seconds of the start, also where start and imports take their time.
_LOOK_SECONDS = 1.3
_LEAST_LOOK_SECONDS = 1.0
_ANSWERED_BY_SECONDS = 1.6
_AFTER_CLUSTER_SECONDS = 0.2
_LEAST_SECONDS = 0.5  # for the run folders, when the cluster took its time
_MANY = 8  # runs that are looked at at once
_THREADS_OF_ONE = 4


@dataclass(frozen=True)
class _Target:
    """A run to look at: where it is, what it is called, and what the cluster says of it."""

    name: str
    location: str
    cluster: ClusterFacts | None = None
    problem: str = ""


@dataclass(frozen=True)
class _Seen:
    name: str
    facts: RunFacts
    verdict: Verdict


def status(arguments: argparse.Namespace) -> int:
    """Prints the state of a run, or of several; returns how the worst of them is."""
    if not (arguments.run or arguments.namespace or arguments.all):
        text = "which run? Give its folder, -n NAMESPACE, or --all"
        return _unknown(text, as_json=arguments.json)
    if arguments.all and (arguments.run or arguments.namespace):
        text = "--all looks at every namespace; expected neither RUN nor -n beside it"
        return _unknown(text, as_json=arguments.json)
    if arguments.json and arguments.watch is not None:
        return _unknown("--json prints one look; expected no --watch beside it", as_json=True)
    console = PlainConsole()
    try:
        if arguments.watch is not None:
            return _watch(arguments, console)
        return _once(arguments, console)
    except TandemError as error:
        return _unknown(str(error), as_json=arguments.json)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001  # a fault of ours is no verdict on the run
        traceback.print_exc()
        return _unknown(f"{type(error).__name__}: {error}", as_json=arguments.json)


def _once(arguments: argparse.Namespace, console: Console) -> int:
    seen = _look(arguments, _seconds_of_first_look())
    _print(seen, arguments, console)
    return _exit_code(seen)


def _watch(arguments: argparse.Namespace, console: Console) -> int:
    """Looks again and again, until Ctrl-C; what isn't a terminal gets one look after the other."""
    code = EXIT_CODES[Health.UNKNOWN]
    live = Live(console=console, auto_refresh=False, transient=False)
    with live if console.is_terminal else nullcontext():
        try:
            seconds = _seconds_of_first_look()
            while True:
                seen = _look(arguments, seconds)
                seconds = _LOOK_SECONDS
                code = _exit_code(seen)
                shown = _shown(seen, console, is_one=_is_one(arguments))
                if console.is_terminal:
                    live.update(fitted(shown, console), refresh=True)
                else:
                    console.print(shown, "", soft_wrap=_is_one(arguments))
                    sys.stdout.flush()
                time.sleep(arguments.watch)
        except KeyboardInterrupt:
            return code


def _seconds_of_first_look() -> float:
    left = _ANSWERED_BY_SECONDS - seconds_since_start()
    return max(_LEAST_LOOK_SECONDS, min(_LOOK_SECONDS, left))


def _look(arguments: argparse.Namespace, seconds: float) -> list[_Seen]:
    if not (arguments.namespace or arguments.all):
        return [_look_at(_Target(arguments.run, arguments.run), seconds)]
    with Hurry(seconds=seconds, threads=_MANY) as hurry:
        return _look_with_cluster(arguments, hurry, seconds)


def _look_with_cluster(arguments: argparse.Namespace, hurry: Hurry, seconds: float) -> list[_Seen]:
    # The official client takes half a second to import, which looks at a folder do without.
    from services.ctl.status.clusters import targets  # noqa: PLC0415

    found = targets(
        namespaces=[arguments.namespace] if arguments.namespace else None,
        run=arguments.run,
        seconds=seconds - _AFTER_CLUSTER_SECONDS,
    )
    left = max(_LEAST_SECONDS, seconds - hurry.seconds_gone)
    if isinstance(found, ClusterError):
        if arguments.run is None or not _is_location(arguments.run):
            raise found
        return [_look_at(_Target(arguments.run, arguments.run, problem=str(found)), left)]
    if not found and arguments.run is not None and not _is_location(arguments.run):
        raise ConfigError(
            f"there is no experiment {arguments.run!r} in namespace {arguments.namespace}; "
            f"tandem status -n {arguments.namespace} shows those that there are"
        )
    wanted = [_Target(one.title, one.run, one.facts) for one in found]
    if not wanted and arguments.run is not None and _is_location(arguments.run):
        problem = f"no release in namespace {arguments.namespace} has this run folder"
        wanted = [_Target(arguments.run, arguments.run, problem=problem)]
    until = hurry.seconds_gone + left  # for all of them: a store that hangs must not hang for each
    answers = [hurry.ask(_looking_at(target, hurry, until=until)) for target in wanted]
    return sorted((answer.wait(10.0) for answer in answers), key=_rank)


def _looking_at(target: _Target, hurry: Hurry, *, until: float) -> Callable[[], _Seen]:
    """One of several: what can't be looked at doesn't keep people from the others."""

    def look() -> _Seen:
        try:
            return _look_at(target, until - hurry.seconds_gone)
        except Exception as error:  # noqa: BLE001  # whatever it is, that run is unknown
            words = str(error) if isinstance(error, TandemError) else f"{error!r}"
            access = AccessProblem(Access.UNAVAILABLE, words)
            facts = RunFacts(target.location, access=access, cluster=target.cluster)
            return _Seen(target.name, facts, verdict_on(facts))

    return look


def _look_at(target: _Target, seconds: float) -> _Seen:
    with Hurry(seconds=seconds, threads=_THREADS_OF_ONE if target.cluster else 16) as hurry:
        if target.location:
            facts = look_at(target.location, hurry)
        else:
            words = "the cluster does not say where its run folder is"
            facts = RunFacts("", access=AccessProblem(Access.NO_RUN, words))
    if target.cluster is not None and _is_in_a_volume(facts):
        words = f"{target.location} is in a volume of the cluster, out of reach from here"
        facts = replace(facts, access=AccessProblem(Access.NO_RUN, words))
    facts = replace(facts, cluster=target.cluster, cluster_problem=target.problem)
    return _Seen(target.name, facts, verdict_on(facts))


def _is_in_a_volume(facts: RunFacts) -> bool:
    is_absent = facts.access is not None and facts.access.kind is Access.NO_RUN
    return is_absent and bool(facts.location) and not is_remote(facts.location)


def _is_location(text: str) -> bool:
    return is_remote(text) or "/" in text


def _rank(seen: _Seen) -> tuple[int, str]:
    return seen.verdict.health.rank, seen.name


def _is_one(arguments: argparse.Namespace) -> bool:
    return arguments.run is not None


def _print(seen: Sequence[_Seen], arguments: argparse.Namespace, console: Console) -> None:
    if arguments.json:
        documents = [{"name": s.name, **reports.as_json(s.facts, s.verdict)} for s in seen]
        one = _is_one(arguments) and len(documents) == 1
        print_json(documents[0] if one else {"schema": reports.SCHEMA, "runs": documents})
    else:
        shown = _shown(seen, console, is_one=_is_one(arguments))
        console.print(shown, soft_wrap=_is_one(arguments))


def _shown(seen: Sequence[_Seen], console: Console, *, is_one: bool) -> Group:
    if not seen:
        return Group("no experiment found")
    if is_one and len(seen) == 1:
        width = console.width if console.is_terminal else None  # elsewhere lines stay whole
        return Group(*reports.screen(seen[0].facts, seen[0].verdict, width=width))
    return Group(reports.table([(s.name, s.facts, s.verdict) for s in seen]))


def _exit_code(seen: Sequence[_Seen]) -> int:
    if not seen:
        return EXIT_CODES[Health.UNKNOWN]
    worst = min((one.verdict.health for one in seen), key=lambda health: health.rank)
    return EXIT_CODES[worst]


def _unknown(message: str, *, as_json: bool = False) -> int:
    if as_json:
        print_json({"schema": reports.SCHEMA, "health": Health.UNKNOWN.value, "error": message})
    sys.stderr.write(f"tandem: {escaped_lines(message)}\n")
    return EXIT_CODES[Health.UNKNOWN]
