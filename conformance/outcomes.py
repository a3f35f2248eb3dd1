"""Outcomes of tests: read from pytest's own XML, joined with the known reasons."""

from __future__ import annotations

import fnmatch
import re
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

# Names that differ from run to run: identifiers, times, ports. Without them two runs write the same report.
VOLATILE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\b\d{5,}(?:\.\d+)?\b"
)
ERROR_CHARACTERS_MAX = 160


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    EXPLAINED = "explained"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Outcome:
    """One test: which, with which markers, how it ended, and the first line of why."""

    test: str
    markers: tuple[str, ...]
    result: Result
    why: str = ""

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


def read_outcomes(junit: Path) -> dict[str, Outcome]:
    """Outcomes by test. A test may be reported twice (its body, then its clean-up): the worse of the two counts."""
    outcomes: dict[str, Outcome] = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        outcome = read_case(case)
        earlier = outcomes.get(outcome.test)
        if earlier is None or earlier.result is Result.PASSED:
            outcomes[outcome.test] = outcome
    return outcomes


def read_case(case: ElementTree.Element) -> Outcome:
    properties = {entry.get("name", ""): entry.get("value", "") for entry in case.iter("property")}
    # A file that cannot be imported has no properties, only a name.
    test = (
        VOLATILE.sub("…", properties.get("nodeid", ""))
        or case.get("file")
        or case.get("classname")
        or case.get("name")
        or "?"
    )
    markers = tuple(properties.get("markers", "").split())
    for tag, result in (("error", Result.ERROR), ("failure", Result.FAILED), ("skipped", Result.SKIPPED)):
        element = case.find(tag)
        if element is not None:
            return Outcome(test, markers, result, first_line(element.get("message") or element.text or ""))
    return Outcome(test, markers, Result.PASSED)


def first_line(message: str) -> str:
    line = next((line.strip() for line in message.splitlines() if line.strip()), "")
    line = VOLATILE.sub("…", line)
    return line if len(line) <= ERROR_CHARACTERS_MAX else line[: ERROR_CHARACTERS_MAX - 1] + "…"


def read_reasons(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        explained: dict[str, str] = tomllib.load(file)["explained"]
    return explained


def explain(outcomes: Mapping[str, Outcome], reasons: Mapping[str, str]) -> Iterator[Outcome]:
    for outcome in outcomes.values():
        reason = reason_for(outcome.test, reasons)
        if reason is not None and outcome.result in (Result.FAILED, Result.ERROR):
            yield replace(outcome, result=Result.EXPLAINED, why=reason)
        else:
            yield outcome


def reason_for(test: str, reasons: Mapping[str, str]) -> str | None:
    # Parameters of a test are written in brackets, which a pattern would read as a set of characters.
    return next(
        (reason for pattern, reason in reasons.items() if fnmatch.fnmatchcase(test, pattern.replace("[", "[[]"))), None
    )


def reasons_no_longer_needed(outcomes: list[Outcome], reasons: Mapping[str, str]) -> list[str]:
    """Entries that fit some test of this run, and no test that needs explaining."""
    unneeded = []
    for pattern in reasons:
        fitting = [outcome for outcome in outcomes if reason_for(outcome.test, {pattern: ""}) is not None]
        if fitting and all(outcome.result is not Result.EXPLAINED for outcome in fitting):
            unneeded.append(pattern)
    return unneeded
