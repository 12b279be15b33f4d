"""Whether the answers about a fault were right; pure.

A fault was answered rightly when every answer named its cause class by one of the findings that
belong to it, and what ran before the fault was not called broken. An answer of `healthy` with the
fault in place is a false one, whatever else was said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_SECONDS = 2.0
"""An answer has to come within so many."""

NUM_FAULTS = 24
MOST_WRONG = 2
"""Of all 24; of fewer none may be wrong."""

EXIT_CODES = {"healthy": 0, "degraded": 1, "broken": 2, "unknown": 3}


class Expected(NamedTuple):
    """What the answer to a fault is.

    Attributes:
        cause: the class.
        codes: findings that say so.
    """

    cause: str
    codes: tuple[str, ...]


class Answer(NamedTuple):
    """What `tandem status --json` said.

    Attributes:
        health: healthy, degraded, broken or unknown; empty where there was no answer.
        cause: class of the worst finding.
        code: of the worst finding.
        seconds: that the process took.
        exit_code: of the process.
        text: the verdict, or what was on its standard error.
    """

    health: str
    cause: str
    code: str
    seconds: float
    exit_code: int
    text: str = ""

    @property
    def is_healthy(self):
        return "healthy" in (self.health, _health_of(self.exit_code))

    def fits(self, expected):
        is_consistent = EXIT_CODES.get(self.health) == self.exit_code
        says_so = self.cause == expected.cause and self.code in expected.codes
        return says_so and is_consistent and not self.is_healthy


def _health_of(exit_code):
    return next((health for health, code in EXIT_CODES.items() if code == exit_code), "")


@dataclass(frozen=True)
class Row:
    """What came of a fault.

    Attributes:
        number: 1 to 24.
        what: the fault, in words.
        expected: of the answers.
        answers: those that were given with the fault in place, in order.
        before: answers while all should have been well; empty where nothing ran before.
        trouble: why the fault could not be shown; empty when it was.
        seconds: that the whole scene took.
    """

    number: int
    what: str
    expected: Expected
    answers: tuple[Answer, ...] = ()
    before: tuple[Answer, ...] = ()
    trouble: str = ""
    seconds: float = 0.0

    @property
    def is_right(self):
        fits = bool(self.answers) and all(a.fits(self.expected) for a in self.answers)
        return fits and not self.trouble and not self.was_ill

    @property
    def was_ill(self):
        """Whether the run was not well before, or was already said to have this fault."""
        return any(
            a.health not in ("healthy", "degraded") or a.code in self.expected.codes
            for a in self.before
        )

    @property
    def is_false_healthy(self):
        return any(answer.is_healthy for answer in self.answers)

    @property
    def is_slow(self):
        return self.slowest >= MOST_SECONDS

    @property
    def slowest(self):
        return max((answer.seconds for answer in self.answers), default=0.0)

    @property
    def worst(self):
        """The answer to show: a healthy one, else one that doesn't fit, else the last."""
        for is_bad in (lambda a: a.is_healthy, lambda a: not a.fits(self.expected)):
            for answer in self.answers:
                if is_bad(answer):
                    return answer
        return self.answers[-1] if self.answers else None


@dataclass(frozen=True)
class Tally:
    """All rows, and what was left out, by number with the reason."""

    rows: Sequence[Row]
    not_run: dict[int, str]

    @property
    def num_right(self):
        return sum(row.is_right for row in self.rows)

    @property
    def num_false_healthy(self):
        return sum(row.is_false_healthy for row in self.rows)

    @property
    def last_line(self):
        """`right: 24 of 24, false healthy: 0`; of what was not run it claims nothing."""
        line = f"right: {self.num_right} of {len(self.rows)}"
        line += f", false healthy: {self.num_false_healthy}"
        if self.not_run:
            line += f", not run: {', '.join(map(str, sorted(self.not_run)))}"
        return line

    @property
    def exit_code(self):
        may_be_wrong = MOST_WRONG if len(self.rows) == NUM_FAULTS else 0
        is_good = (
            bool(self.rows)
            and len(self.rows) - self.num_right <= may_be_wrong
            and self.num_false_healthy == 0
            and not any(row.is_slow for row in self.rows)
        )
        return 0 if is_good else 1

    def lines(self):
        """The table, what is to be said about its rows, and the last line."""
        yield f"{'no':>2}  {'fault':<52} {'expected':<8} {'answer':<42} {'s':>4}"
        for row in sorted(self.rows, key=lambda row: row.number):
            yield from _lines_of(row)
        for number, reason in sorted(self.not_run.items()):
            yield f"{number:>2}  not run: {reason}"
        yield self.last_line


def _lines_of(row):
    worst = row.worst
    answer = f"{worst.health} {worst.cause or '-'} {worst.code or '-'}" if worst else "none"
    mark = "" if row.is_right else "  WRONG"
    yield (
        f"{row.number:>2}  {row.what:<52} {row.expected.cause:<8} {answer:<42} "
        f"{row.slowest:>4.1f}{mark}"
    )
    if row.trouble:
        yield f"    not shown: {row.trouble}"
    for before in row.before:
        if before.health != "healthy":
            yield f"    before: {before.health} {before.cause} {before.code}: {before.text}"
    if worst and not row.is_right:
        yield f"    said: {worst.text} (exit code {worst.exit_code})"
    if row.is_slow:
        yield f"    slow: {row.slowest:.1f} s, and at most {MOST_SECONDS:g} s are allowed"
