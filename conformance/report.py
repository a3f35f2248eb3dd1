"""The NoSQL part of docs/conformance.md: the score by marker and by file, and what failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conformance.outcomes import Outcome, Result
from conformance.stores import SHOWN, title, verb

COLUMNS = (Result.PASSED, Result.FAILED, Result.ERROR, Result.EXPLAINED, Result.SKIPPED)


@dataclass(frozen=True)
class Run:
    """The command of the run, for readers who want to repeat it."""

    client_version: str
    markers: str
    store: str
    command: str
    is_emulator_address: bool
    unneeded_reasons: tuple[str, ...] = ()


def write_report(run: Run, outcomes: list[Outcome]) -> str:
    chosen = re.findall(r"\bcosmos\w+", run.markers)
    by_marker = {marker: [outcome for outcome in outcomes if marker in outcome.markers] for marker in chosen}
    by_file = {file: [outcome for outcome in outcomes if outcome.file == file] for file in files(outcomes)}
    lines = [
        title("NoSQL", run.store),
        "",
        f"The tests that `azure-cosmos` {run.client_version} brings in its own source distribution, run unchanged",
        f"against Asterism over https, on {SHOWN[run.store]}. Written by `{verb('conformance', run.store)}`; the",
        f"command was `{run.command}`.",
        *address_note(run),
        "",
        '"Explained" tests fail for a reason that is known and written in conformance/expected.toml.',
        "A test with several markers counts in each of them; one that failed beside others was run once more alone.",
        "The tests sleep 30 seconds between two looks at a split; here that is half a second (conformance/plugin.py).",
        "",
        "### By marker",
        "",
        *table("Marker", {**by_marker, "**all**": outcomes}),
        "",
        "### By file",
        "",
        *table("File", by_file),
        "",
        *listing("Failing", outcomes, {Result.FAILED, Result.ERROR}),
        *listing("Explained", outcomes, {Result.EXPLAINED}),
        *unneeded(run.unneeded_reasons),
    ]
    return "\n".join(lines).rstrip() + "\n"


def address_note(run: Run) -> list[str]:
    if run.is_emulator_address:
        return []
    return [
        "",
        "This run was not on https://localhost:8081/, the only address at which the tests take the server for an",
        "emulator; a few of them are skipped or differ for that reason.",
    ]


def files(outcomes: Iterable[Outcome]) -> list[str]:
    return sorted({outcome.file for outcome in outcomes})


def table(title: str, rows: Mapping[str, list[Outcome]]) -> list[str]:
    head = [
        "| " + " | ".join([title, *COLUMNS, "total"]) + " |",
        "|---|" + "---:|" * (len(COLUMNS) + 1),
    ]
    return [*head, *(row(name, outcomes) for name, outcomes in rows.items())]


def row(name: str, outcomes: list[Outcome]) -> str:
    count = Counter(outcome.result for outcome in outcomes)
    return "| " + " | ".join([name, *(str(count[column]) for column in COLUMNS), str(len(outcomes))]) + " |"


def listing(title: str, outcomes: Iterable[Outcome], results: set[Result]) -> list[str]:
    chosen = sorted((outcome for outcome in outcomes if outcome.result in results), key=lambda outcome: outcome.test)
    if not chosen:
        return []
    lines = (f"- `{outcome.test}`: {plain(outcome.why)}" for outcome in chosen)
    return [f"### {title}", "", *lines, ""]


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{character}" if character in "\\`*_<>[]|" else character for character in text)


def unneeded(patterns: tuple[str, ...]) -> list[str]:
    if not patterns:
        return []
    return ["### Reasons no longer needed", "", *(f"- `{pattern}`" for pattern in patterns), ""]
