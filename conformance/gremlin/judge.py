"""Runs TinkerPop's scenarios against a Gremlin server and prints a score for each folder."""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import logging
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.gremlin import partition_keys, toy_graphs
from conformance.gremlin.comparison import same, same_in_any_order
from conformance.gremlin.notation import Element, Find, NoSuchValue, read
from conformance.gremlin.scenarios import Check, Scenario, read_scenarios
from conformance.gremlin.subset import reason_to_skip
from conformance.gremlin.target import Refused, Target, Traversals, read_traversals

# Outcomes, best first. The first three count: `order` is right but for the order inside a list, `raised` is an error
# that was due, in other words than TinkerPop's.
OUTCOMES = ("pass", "order", "raised", "fail", "error", "skip")
COUNTED = frozenset(OUTCOMES[:3])

_VERTEX_NAMES = 'g.V().has("name").project("i", "n").by(T.id).by("name")'
_EDGE_NAMES = (
    'g.E().project("i", "o", "l", "n").by(T.id).by(__.coalesce(__.outV().values("name"), __.constant("")))'
    '.by(T.label).by(__.coalesce(__.inV().values("name"), __.constant("")))'
)


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: str
    why: str = ""


class Runner:
    def __init__(
        self, target: Target, toys: dict[str, toy_graphs.ToyGraph], traversals: Traversals | None, partition_key: str
    ) -> None:
        self._target = target
        self._toys = toys
        self._traversals = traversals
        self._partition_key = partition_key

    def judge(self, scenario: Scenario) -> Verdict:
        try:
            return self._judge(scenario)
        except Refused as refused:
            return Verdict("error", str(refused))
        except NoSuchValue as form:
            return Verdict("skip", f"a value that cannot be sent: {form}")

    def _judge(self, scenario: Scenario) -> Verdict:
        graph = (
            f"empty_by_{self._partition_key}" if scenario.graph == "empty" and self._partition_key else scenario.graph
        )
        made = None if self._traversals is None else iter(self._traversals[scenario.name])
        if scenario.graph == "empty":
            self._target.run(graph, "g.V().drop()")
        for text in scenario.initializers:
            self._ask(graph, text, made, {}, {})
        find = self._finder(graph)
        values = {name: read(text, find) for name, text in scenario.parameters.items()}
        side_effects = {name: read(text, find) for name, text in scenario.side_effects.items()}
        results: list[Any] = []
        error: str | None = None
        try:
            results = self._ask(graph, scenario.traversal, made, side_effects, values)
        except Refused as refused:
            error = str(refused)
        else:
            if scenario.takes_first_only:
                results = list(results[0]) if results else []
        worst = Verdict("pass")
        for check in scenario.checks:
            verdict = self._check(check, graph, results, error, made, values)
            worst = max(worst, verdict, key=lambda found: OUTCOMES.index(found.outcome))
        return worst

    def _ask(self, graph: str, text: str, made: Any, side_effects: dict[str, Any], values: dict[str, Any]) -> list[Any]:
        if made is not None:
            return self._target.run_bytecode(graph, next(made), side_effects, values)
        source = "g" + "".join(f'.withSideEffect("{key}", side_{key})' for key in side_effects)
        bound = values | {f"side_{key}": value for key, value in side_effects.items()}
        if self._partition_key and graph not in self._toys:
            text = partition_keys.with_keys(text, self._partition_key)
        return self._target.run(graph, source + text.removeprefix("g"), bound)

    def _check(
        self, check: Check, graph: str, results: list[Any], error: str | None, made: Any, values: dict[str, Any]
    ) -> Verdict:
        if check.kind in {"error", "error_text"}:
            return _check_error(check, error)
        if error is not None:
            return Verdict("error", error)
        if check.kind == "count":
            return _verdict(
                len(results) == int(check.arguments[0]), f"{len(results)} results, not {check.arguments[0]}"
            )
        if check.kind == "graph":
            wanted, text = check.arguments
            text = text.replace('\\"', '"')
            if made is not None:
                count = len(self._ask(graph, text, made, {}, values))
            else:
                (count,) = self._ask(graph, f"{text}.count()", None, {}, values)
            return _verdict(count == int(wanted), f"{text} has {count}, not {wanted}")
        if check.arguments == ("empty",):
            return _verdict(not results, f"{len(results)} results, none expected")
        find = self._finder(graph)
        return _check_results(check, [read(row, find) for row in check.rows], results)

    def _finder(self, graph: str) -> Find:
        """Names of elements: known for the toy graphs, asked for in a graph that the scenario has made."""
        if graph in self._toys:
            return self._toys[graph].find
        toy: toy_graphs.ToyGraph | None = None

        def find(kind: str, name: str) -> Element:
            nonlocal toy
            if toy is None:
                toy = toy_graphs.ToyGraph()
                for row in self._target.run(graph, _VERTEX_NAMES):
                    toy.found["v", row["n"]] = Element("v", row["i"])
                for row in self._target.run(graph, _EDGE_NAMES):
                    toy.found["e", f"{row['o']}-{row['l']}->{row['n']}"] = Element("e", row["i"], row["l"])
            return toy.find(kind, name)

        return find


def _check_error(check: Check, error: str | None) -> Verdict:
    if error is None:
        return Verdict("fail", "an error was due")
    if check.kind == "error":
        return Verdict("pass")
    how, text = check.arguments
    is_said = {"containing": text in error, "starting": error.startswith(text), "ending": error.endswith(text)}[how]
    return Verdict("pass") if is_said else Verdict("raised", f"{error[:200]!r} instead of {text!r}")


def _check_results(check: Check, expected: list[Any], results: list[Any]) -> Verdict:
    why = f"{_short(results)} instead of {_short(expected)}"
    (how,) = check.arguments
    if how == "of":
        return _verdict(all(any(same(item, found) for item in expected) for found in results), why)
    for any_order, outcome in ((False, "pass"), (True, "order")):
        if how == "ordered":
            is_right = len(expected) == len(results) and all(
                same(item, found, any_order=any_order) for item, found in zip(expected, results, strict=True)
            )
        else:
            is_right = same_in_any_order(expected, results, any_order=any_order)
        if is_right:
            return Verdict(outcome, "" if outcome == "pass" else why)
    return Verdict("fail", why)


def _verdict(is_right: bool, why: str) -> Verdict:
    return Verdict("pass") if is_right else Verdict("fail", why)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:300]}…"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="folder with the .feature files, data files and gremlin.py")
    parser.add_argument("--url", required=True)
    parser.add_argument("--user", default="", help="for example /dbs/tinkerpop/colls/{graph}")
    parser.add_argument("--password", default="")
    parser.add_argument("--source", default="g", help="the traversal source's name, for example g{graph}")
    parser.add_argument("--wire", choices=("graphbinary", "graphson3"), default="graphbinary")
    parser.add_argument("--mode", choices=("text", "bytecode"), default="text")
    parser.add_argument("--subset", choices=("core", "all"), default="core")
    parser.add_argument("--ids", default="text", help="of the toy graphs: text, number, or a word that shuffles them")
    parser.add_argument("--load", action="store_true", help="load the toy graphs first")
    parser.add_argument(
        "--partition-key", default="", help="of the graph empty_by_KEY, for scenarios that make their own"
    )
    parser.add_argument("--only", default="", help="a part of folder/feature/scenario")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each traversal")
    parser.add_argument("--report", type=Path, help="a file for one JSON line per scenario")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)

    target = Target(
        options.url,
        user=options.user,
        password=options.password,
        source=options.source,
        wire=options.wire,
        seconds_max=options.seconds,
    )
    new_id = {"text": str, "number": int}.get(options.ids, lambda old: _digest(f"{options.ids} {old}"))
    toys = {name: toy_graphs.read_graph(options.checkout, name, new_id) for name in toy_graphs.DATA_FILES}
    if options.load:
        for name, toy in toys.items():
            began = time.monotonic()
            toy_graphs.load(toy, functools.partial(target.run, name))
            print(
                f"loaded {name}: {len(toy.vertices)} vertices, {len(toy.edges)} edges, {time.monotonic() - began:.1f} s"
            )
    traversals = read_traversals(options.checkout) if options.mode == "bytecode" else None
    features = next(path for path in options.checkout.rglob("features") if any(path.rglob("*.feature")))

    runner = Runner(target, toys, traversals, options.partition_key)
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    report = options.report.open("w") if options.report else None
    began = time.monotonic()
    for scenario in read_scenarios(features):
        if options.only not in f"{scenario.folder}/{scenario.feature}/{scenario.name}":
            continue
        reason = reason_to_skip(scenario, options.subset)
        if reason is None and options.partition_key:
            reason = partition_keys.reason_to_skip(scenario) if scenario.graph == "empty" else "has its graph already"
        if reason is None and traversals is not None and scenario.name not in traversals:
            reason = "has no Python form"
        verdict = Verdict("skip", reason) if reason else runner.judge(scenario)
        tally[scenario.folder][verdict.outcome] += 1
        if report is not None:
            line = {"scenario": f"{scenario.folder}/{scenario.feature}/{scenario.name}", "outcome": verdict.outcome}
            report.write(json.dumps(line | {"traversal": scenario.traversal, "why": verdict.why}) + "\n")
        if options.only and verdict.outcome not in {"pass", "skip"}:
            print(f"{verdict.outcome}: {scenario.name}\n   {scenario.traversal}\n   {verdict.why}")
    target.close()
    _print_tally(tally, time.monotonic() - began)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _print_tally(tally: dict[str, Counter[str]], seconds: float) -> None:
    total: Counter[str] = sum(tally.values(), Counter())
    print(f"{'folder':<12}" + "".join(f"{outcome:>8}" for outcome in OUTCOMES) + f"{'score':>9}")
    for folder, counts in (*sorted(tally.items()), ("all", total)):
        judged = sum(count for outcome, count in counts.items() if outcome != "skip")
        good = sum(counts[outcome] for outcome in COUNTED)
        score = f"{100 * good / judged:.1f} %" if judged else "-"
        print(f"{folder:<12}" + "".join(f"{counts[outcome]:>8}" for outcome in OUTCOMES) + f"{score:>9}")
    print(f"{seconds:.0f} s")


if __name__ == "__main__":
    main()
