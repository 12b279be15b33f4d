"""Rules made wrong in one place each, as people make them wrong, for tests that must notice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.deploy.alerting import Rule

_FLIPPED = {">": "<=", "<": ">=", ">=": "<", "<=": ">", "==": "!="}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(r"\{[^}]*\}")
_MATCHER = re.compile(r'\w+(?:=~|!~|!=|=)"(?:[^"\\]|\\.)*"(?:, )?')
_RANGE = re.compile(r"\[(\d+)([smhd])(:\w+)?\]")
_NUMBER = re.compile(r"(?<![\w.:])\d+(?:\.\d+)?(?![\w.:])")
_COMPARISON = re.compile(r"[<>]=?|==")
_EVERYWHERE = ("namespace=", "run=")
_SET_OPERATOR = re.compile(r"\b(and|unless|or)\b")


class Mutant(NamedTuple):
    """A rule with one mistake, and the mistake in words."""

    mistake: str
    rule: Rule


def mutants(rule: Rule) -> Iterator[Mutant]:
    """All mistakes in one rule, one at a time."""
    for mistake, expression in _expressions(rule["expr"]):
        yield Mutant(mistake, {**rule, "expr": expression})
    if "for" in rule:
        number, unit = re.fullmatch(r"(\d+)([smh])", rule["for"]).groups()
        yield Mutant("for is left out", {key: rule[key] for key in rule if key != "for"})
        yield Mutant("for is tenfold", {**rule, "for": f"{10 * int(number)}{unit}"})


def _expressions(text: str) -> Iterator[tuple[str, str]]:
    bare = _blanked(text, _QUOTED)
    code = _blanked(_blanked(bare, _SELECTOR), _RANGE)
    for found in _COMPARISON.finditer(code):
        flipped = _FLIPPED[found[0]]
        yield f"{_near(text, found)} with {flipped}", _replaced(text, found.span(), flipped)
    for found in _NUMBER.finditer(code):
        tenfold = f"{10 * float(found[0]) or 10:g}"
        yield f"{_near(text, found)} with {tenfold}", _replaced(text, found.span(), tenfold)
    for found in _RANGE.finditer(bare):
        window = f"[{10 * int(found[1])}{found[2]}{found[3] or ''}]"
        yield f"{_near(text, found)} with {window}", _replaced(text, found.span(), window)
    for selector in _SELECTOR.finditer(bare):
        for found in _MATCHER.finditer(text, *selector.span()):
            if not found[0].startswith(_EVERYWHERE):
                yield f"{_near(text, found)} left out", _replaced(text, found.span(), "")
    for label in _EVERYWHERE:
        # On one side of an operator alone it would change nothing.
        everywhere = re.sub(rf'\b{label}"[^"]*"(?:, )?', "", text)
        if everywhere != text:
            yield f"{label} left out everywhere", everywhere.replace(", }", "}")
    for span in _operands(code):
        yield f"{text[slice(*span)]} left out", _replaced(text, span, "")


def _operands(code: str) -> Iterator[tuple[int, int]]:
    """Spans of set operators with what follows, and of what stands before an `or`."""
    for found in _SET_OPERATOR.finditer(code):
        ends = ("or",) if found[0] == "or" else ("or", "and", "unless")
        yield found.start(), _reach(code, found.end(), ends)
        if found[0] == "or":
            yield _start(code, found.start()), found.end()


def _reach(code: str, start: int, ends: tuple[str, ...]) -> int:
    """Where an operand ends: at one of the operators on its level, or with its parenthesis."""
    depth = 0
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        word = _SET_OPERATOR.match(code, place)
        if depth < 0 or (depth == 0 and word and word[0] in ends and not code[place - 1].isalnum()):
            return place
    return len(code)


def _start(code: str, end: int) -> int:
    depth = 0
    for place in range(end - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(code[place], 0)
        if depth < 0:
            return place + 1
    return 0


def _blanked(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda found: "_" * len(found[0]), text)


def _replaced(text: str, span: tuple[int, int], by: str) -> str:
    made = text[: span[0]] + by + text[span[1] :]
    return made.replace(", }", "}")


def _near(text: str, found: re.Match[str]) -> str:
    return "..." + text[max(0, found.start() - 40) : found.end() + 10] + "..."


def derived(rules: tuple[Rule, ...], mutant: Rule, mark: str) -> list[Rule]:
    """The mutant and all that uses it, under names with a mark, in the rules' order."""
    original = mutant.get("record") or mutant["alert"]
    marked = {original}
    made = []
    for rule in rules:
        name = rule.get("record") or rule["alert"]
        base = mutant if name == original else rule
        users = [used for used in marked if re.search(rf"{used}\b", base["expr"])]
        if name != original and not users:
            continue
        expression = base["expr"]
        for used in users:
            expression = re.sub(rf"{used}\b", f"{used}{mark}", expression)
        kind = "record" if "record" in rule else "alert"
        made.append({**base, kind: f"{name}{mark}", "expr": expression})
        if kind == "record":
            marked.add(name)
    return made
