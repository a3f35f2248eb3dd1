"""The order of writes of an edge and of its entry at the sink (D11), in every interleaving of small programs.

The model has one edge, two sinks in other partitions than the edge, and writers that go through the steps of
`models/documents/incoming/writes.py`. A crash is a prefix of an interleaving, so that the rule is checked after every
step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import pytest

SINKS = ("A", "B")
ATTEMPTS = 2


@dataclass(frozen=True)
class Edge:
    number: int
    version: int
    sink: str


Entry = tuple[str, int]


@dataclass(frozen=True)
class Rule:
    # False: an entry is removed whatever became of it meanwhile.
    is_conditional: bool = True
    # False: the entry's key has the edge's id, which a later edge may have too.
    is_numbered: bool = True
    # True: while items are walked, an entry is written even if the edge had it before.
    always_puts: bool = False


@dataclass(frozen=True)
class Writer:
    """`wishes` are the operations still to be done; the others are what the present one remembers."""

    wishes: tuple[str, ...]
    step: str = "read"
    attempts: int = 0
    seen: Edge | None = None
    wanted: Edge | None = None
    old_version: int | None = None
    own_version: int | None = None

    def next_wish(self) -> Writer:
        return Writer(self.wishes[1:])

    def again(self) -> Writer:
        done = Writer(self.wishes, attempts=self.attempts + 1)
        return done if done.attempts < ATTEMPTS else done.next_wish()


@dataclass(frozen=True)
class State:
    edge: Edge | None
    entries: tuple[tuple[Entry, int], ...]
    writers: tuple[Writer, ...]
    clock: int = 10

    def entry(self, key: Entry) -> int | None:
        return dict(self.entries).get(key)

    def with_entry(self, key: Entry) -> State:
        entries = {**dict(self.entries), key: self.clock}
        return replace(self, entries=tuple(sorted(entries.items())), clock=self.clock + 1)

    def without_entry(self, key: Entry) -> State:
        return replace(self, entries=tuple(found for found in self.entries if found[0] != key))

    def with_writer(self, place: int, writer: Writer) -> State:
        writers = list(self.writers)
        writers[place] = writer
        return replace(self, writers=tuple(writers))


def entry_of(edge: Edge, rule: Rule) -> Entry:
    return edge.sink, edge.number if rule.is_numbered else 0


def wanted_by(state: State, wish: str) -> Edge | None:
    """Return the edge that a wish leads to from the one that is there; its version is given by the commit."""
    if wish == "delete":
        return None
    number = state.edge.number if state.edge is not None else state.clock
    sink = state.edge.sink if wish == "touch" and state.edge is not None else wish[-1]
    return Edge(number, 0, sink)


def moves(state: State, place: int, rule: Rule) -> Iterator[State]:
    """Yield what the next step of a writer may lead to."""
    writer = state.writers[place]
    if not writer.wishes:
        return
    wish, step, seen, wanted = writer.wishes[0], writer.step, writer.seen, writer.wanted
    if wish == "walk":
        yield from walk(state, place, rule)
        return
    if step == "read":
        impossible = state.edge is None if wish in ("delete", "touch") else wish[0] == "+" and state.edge is not None
        if impossible:
            yield state.with_writer(place, writer.next_wish())
            return
        wanted = wanted_by(state, wish)
        kept = state.edge is not None and wanted is not None and entry_of(state.edge, rule) == entry_of(wanted, rule)
        following = "commit" if kept and not rule.always_puts else "look"
        moved = replace(state, clock=state.clock + 1)
        yield moved.with_writer(place, replace(writer, step=following, seen=state.edge, wanted=wanted))
        # All of it is one batch if both ends are in one physical partition at that moment.
        yield moved.with_writer(place, replace(writer, step="together", seen=state.edge, wanted=wanted))
    elif step == "look":
        old = None if seen is None else state.entry(entry_of(seen, rule))
        yield state.with_writer(place, replace(writer, step="put", old_version=old))
    elif step == "put":
        after, own = state, None
        if wanted is not None:
            entry = entry_of(wanted, rule)
            own = state.clock if state.entry(entry) is None else None
            after = state.with_entry(entry)
        yield after.with_writer(place, replace(writer, step="commit", own_version=own))
    elif step in ("commit", "together"):
        if state.edge != seen:
            withdraws = step == "commit" and writer.own_version is not None
            yield state.with_writer(place, replace(writer, step="withdraw") if withdraws else writer.again())
            return
        edge = None if wanted is None else replace(wanted, version=state.clock)
        after = replace(state, edge=edge, clock=state.clock + 1)
        is_moved = seen is not None and (wanted is None or entry_of(seen, rule) != entry_of(wanted, rule))
        if step == "commit":
            yield after.with_writer(place, replace(writer, step="remove") if is_moved else writer.next_wish())
            return
        if is_moved and seen is not None:
            after = after.without_entry(entry_of(seen, rule))
        if wanted is not None:
            after = after.with_entry(entry_of(wanted, rule))
        yield after.with_writer(place, writer.next_wish())
    elif step == "withdraw":
        assert wanted is not None
        entry = entry_of(wanted, rule)
        removes = state.entry(entry) == writer.own_version
        yield (state.without_entry(entry) if removes else state).with_writer(place, writer.again())
    else:
        assert seen is not None
        entry = entry_of(seen, rule)
        unchanged = writer.old_version is not None and state.entry(entry) == writer.old_version
        removes = unchanged or not rule.is_conditional
        yield (state.without_entry(entry) if removes else state).with_writer(place, writer.next_wish())


def walk(state: State, place: int, rule: Rule) -> Iterator[State]:
    """The walk over items that were written before there were entries."""
    writer = state.writers[place]
    seen = writer.seen
    if writer.step == "read":
        if state.edge is None:
            yield state.with_writer(place, writer.next_wish())
        else:
            yield state.with_writer(place, replace(writer, step="put", seen=state.edge))
        return
    assert seen is not None
    entry = entry_of(seen, rule)
    if writer.step == "put":
        if state.entry(entry) is not None:
            yield state.with_writer(place, writer.next_wish())
        else:
            own = replace(writer, step="look again", own_version=state.clock)
            yield state.with_entry(entry).with_writer(place, own)
    elif writer.step == "look again":
        is_same = state.edge == seen
        yield state.with_writer(place, writer.next_wish() if is_same else replace(writer, step="remove"))
    else:
        removes = state.entry(entry) == writer.own_version
        yield (state.without_entry(entry) if removes else state).with_writer(place, writer.next_wish())


def is_sound(state: State, rule: Rule) -> bool:
    """The edge has its entry: at once, or when the walk is over if it was there before the walk."""
    if any(writer.wishes[:1] == ("walk",) for writer in state.writers):
        return True
    return state.edge is None or state.entry(entry_of(state.edge, rule)) is not None


def explore(start: State, rule: Rule) -> tuple[int, State | None]:
    """Return the number of states that can be reached, and the first that is not sound."""
    known, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        if not is_sound(state, rule):
            return len(known), state
        for place in range(len(state.writers)):
            for following in moves(state, place, rule):
                if following not in known:
                    known.add(following)
                    waiting.append(following)
    return len(known), None


def start_with(programs: Sequence[tuple[str, ...]], *, rule: Rule, has_edge: bool, has_entry: bool) -> State:
    edge = Edge(1, 1, "A") if has_edge else None
    entries = () if edge is None or not has_entry else ((entry_of(edge, rule), 2),)
    return State(edge, entries, tuple(Writer(program) for program in programs))


# "+A" creates, "=A" upserts, "touch" replaces without another sink.
PROGRAMS = [("+A",), ("=A",), ("=B",), ("touch",), ("delete",), ("delete", "+A"), ("=B", "=A")]
TRIPLES = [
    (("+A",), ("+A",), ("delete",)),
    (("delete", "+A"), ("+A",), ("delete",)),
    (("=B",), ("=A",), ("delete",)),
    (("=B", "=A"), ("touch",), ("delete",)),
]


@pytest.mark.parametrize("has_edge", [True, False])
@pytest.mark.parametrize("programs", [*combinations_with_replacement(PROGRAMS, 2), *TRIPLES])
def test_no_interleaving_and_no_crash_leaves_an_edge_without_its_entry(
    programs: Sequence[tuple[str, ...]], has_edge: bool
) -> None:
    rule = Rule()
    _, unsound = explore(start_with(programs, rule=rule, has_edge=has_edge, has_entry=True), rule)
    assert unsound is None


@pytest.mark.parametrize(
    "programs", [(program,) for program in PROGRAMS] + [(("=B",), ("=A",)), (("delete",), ("+A",))]
)
def test_a_walk_beside_writers_gives_an_older_edge_its_entry(programs: Sequence[tuple[str, ...]]) -> None:
    rule = Rule(always_puts=True)
    start = start_with([("walk",), *programs], rule=rule, has_edge=True, has_entry=False)
    _, unsound = explore(start, rule)
    assert unsound is None


@pytest.mark.parametrize(
    ("rule", "programs"),
    [
        (Rule(is_conditional=False), (("=B",), ("=A",))),
        # A create may wait with its entry written while the edge comes and goes.
        (Rule(is_numbered=False), (("+A",), ("+A",), ("delete",))),
    ],
)
def test_the_model_finds_the_entry_that_a_weaker_rule_loses(rule: Rule, programs: Sequence[tuple[str, ...]]) -> None:
    states = [start_with(programs, rule=rule, has_edge=has_edge, has_entry=True) for has_edge in (True, False)]
    assert any(explore(state, rule)[1] is not None for state in states)
