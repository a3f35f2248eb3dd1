"""Reads TinkerPop's .feature files: just the part of the Gherkin language that they use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Questions of a scenario after its traversal was iterated: (the sentence, the name of the check).
_CHECKS = (
    (r"the result should be (unordered|ordered|of|empty)$", "result"),
    (r"the result should have a count of (\d+)$", "count"),
    (r'the graph should return (\d+) for count of "(.*)"$', "graph"),
    (r'the traversal will raise an error with message (containing|starting|ending) text of "(.*)"$', "error_text"),
    (r"the traversal will raise an error$", "error"),
    (r"the result should be a tree with a structure of$", "tree"),
    (r"the result should be a subgraph with the following$", "subgraph"),
)


@dataclass(frozen=True, slots=True)
class Check:
    kind: str
    arguments: tuple[str, ...]
    rows: list[str] = field(default_factory=list)
    text: str = ""


@dataclass(slots=True)
class Scenario:
    folder: str
    feature: str
    name: str
    tags: frozenset[str]
    graph: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    side_effects: dict[str, str] = field(default_factory=dict)
    initializers: list[str] = field(default_factory=list)
    traversal: str = ""
    takes_first_only: bool = False
    checks: list[Check] = field(default_factory=list)
    # A sentence of TinkerPop's own: "an unsupported test", or one that this reader does not know.
    unsupported: str = ""


def read_scenarios(features: Path) -> Iterator[Scenario]:
    """All scenarios below a folder `features`, in the order of their files."""
    for path in sorted(features.rglob("*.feature")):
        folder = path.relative_to(features).parts[0]
        yield from _scenarios(path.read_text(encoding="utf-8"), folder, path.stem)


def _scenarios(text: str, folder: str, feature: str) -> Iterator[Scenario]:
    feature_tags: frozenset[str] = frozenset()
    tags: list[str] = []
    scenario: Scenario | None = None
    lines = iter(text.splitlines())
    sentence = ""
    for raw in lines:
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("@"):
            tags += line.split()
        elif line.startswith("Feature:"):
            feature_tags, tags = frozenset(tags), []
        elif line.startswith("Scenario:"):
            if scenario is not None:
                yield scenario
            scenario = Scenario(folder, feature, line[len("Scenario:") :].strip(), feature_tags | set(tags))
            tags = []
        elif scenario is None:
            continue
        elif line == '"""':
            _take_text(scenario, sentence, _text_block(lines))
        elif line.startswith("|"):
            _take_row(scenario, line)
        else:
            sentence = re.sub(r"^(Given|When|Then|And|But) ", "", line)
            _take_sentence(scenario, sentence)
    if scenario is not None:
        yield scenario


def _text_block(lines: Iterator[str]) -> str:
    block: list[str] = []
    for raw in lines:
        if raw.strip() == '"""':
            break
        block.append(raw)
    return "\n".join(block)


def _take_text(scenario: Scenario, sentence: str, text: str) -> None:
    if sentence == "the graph initializer of":
        scenario.initializers.append(_one_line(text))
    elif sentence == "the traversal of":
        scenario.traversal = _one_line(text)
    elif scenario.checks:
        last = scenario.checks[-1]
        scenario.checks[-1] = Check(last.kind, last.arguments, last.rows, text)


def _one_line(text: str) -> str:
    return "".join(line.strip() for line in text.splitlines())


def _take_row(scenario: Scenario, line: str) -> None:
    cell = line.strip("|").strip().replace("\\|", "|").replace("\\\\", "\\")
    rows = scenario.checks[-1].rows
    if cell not in {"result", "vertices", "edges"} or rows:
        rows.append(cell)


def _take_sentence(scenario: Scenario, sentence: str) -> None:
    if match := re.fullmatch(r"the (\w+) graph", sentence):
        scenario.graph = match[1]
    elif match := re.fullmatch(r'using the parameter (\w+) defined as "(.*)"', sentence):
        scenario.parameters[match[1]] = match[2].replace('\\"', '"')
    elif match := re.fullmatch(r'using the side effect (\w+) defined as "(.*)"', sentence):
        scenario.side_effects[match[1]] = match[2].replace('\\"', '"')
    elif sentence in {"the graph initializer of", "the traversal of"}:
        pass
    elif sentence == "iterated to list":
        scenario.takes_first_only = False
    elif sentence == "iterated next":
        scenario.takes_first_only = True
    elif sentence.startswith(("an unsupported test", "nothing should happen")):
        scenario.unsupported = "TinkerPop itself has no test here"
    else:
        for pattern, kind in _CHECKS:
            if match := re.fullmatch(pattern, sentence):
                scenario.checks.append(Check(kind, match.groups()))
                return
        scenario.unsupported = f"a sentence this harness does not know: {sentence}"
