"""The ordered map of the memory engine against a dictionary, with blocks so small that they divide and join."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from asterism.storage.contract import ScanPage, Span
from asterism.storage.memory.ordered_map import FrozenMap, OrderedMap

keys = st.binary(max_size=2)
spans = st.builds(Span, keys, st.none() | keys)
ALL = Span()


def everything(state: FrozenMap) -> list[tuple[bytes, bytes]]:
    return state.scan(ALL, reverse=False, limit=10_000, bytes_max=None).entries


class MapMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.map = OrderedMap(block_entries_max=4)
        self.expected: dict[bytes, bytes] = {}
        self.frozen: list[tuple[FrozenMap, dict[bytes, bytes]]] = []

    @rule(entries=st.lists(st.tuples(keys, st.binary(max_size=3)), max_size=12))
    def put(self, entries: list[tuple[bytes, bytes]]) -> None:
        for key, value in entries:
            self.map.put(key, value)
            self.expected[key] = value

    @rule(removed=st.lists(keys, max_size=4))
    def remove(self, removed: list[bytes]) -> None:
        for key in removed:
            self.map.remove(key)
            self.expected.pop(key, None)

    @rule(span=spans, limit=st.none() | st.integers(1, 9))
    def remove_span(self, span: Span, limit: int | None) -> None:
        inside = sorted(key for key in self.expected if span.contains(key))[:limit]
        assert self.map.remove_span(span, limit=limit) == len(inside)
        for key in inside:
            del self.expected[key]

    @precondition(lambda self: len(self.frozen) < 3)
    @rule()
    def freeze(self) -> None:
        self.frozen.append((self.map.freeze(), dict(self.expected)))

    @rule(span=spans, reverse=st.booleans(), limit=st.integers(1, 9), bytes_max=st.none() | st.integers(1, 20))
    def scan(self, span: Span, reverse: bool, limit: int, bytes_max: int | None) -> None:
        inside = sorted(entry for entry in self.expected.items() if span.contains(entry[0]))
        if reverse:
            inside.reverse()
        count = 0
        while count < min(limit, len(inside)) and (
            bytes_max is None or sum(map(len, sum(inside[:count], ()))) < bytes_max
        ):
            count += 1
        page = self.map.scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        assert page == ScanPage(inside[:count], more=count < len(inside))

    @rule(key=keys)
    def get(self, key: bytes) -> None:
        assert self.map.get(key) == self.expected.get(key)

    @invariant()
    def all_states_are_as_they_were(self) -> None:
        for state, expected in [(self.map, self.expected), *self.frozen]:
            assert everything(state) == sorted(expected.items())

    @invariant()
    def the_counters_are_right(self) -> None:
        assert self.map.entry_count == len(self.expected)
        assert self.map.bytes_used == sum(len(key) + len(value) for key, value in self.expected.items())


TestOrderedMap = MapMachine.TestCase
TestOrderedMap.settings = settings(max_examples=60, stateful_step_count=30)


def test_a_map_that_was_emptied_has_one_block_left() -> None:
    """Entries removed one by one leave no empty blocks behind that every later scan would walk over."""
    ordered = OrderedMap(block_entries_max=8)
    for number in range(1000):
        ordered.put(b"%04d" % number, b"")
    for number in range(999, -1, -1):
        ordered.remove(b"%04d" % (number * 7 % 1000))
    assert len(ordered._blocks) == 1


def test_a_change_after_a_freeze_copies_no_more_than_the_block_it_is_in() -> None:
    ordered = OrderedMap(block_entries_max=8)
    for number in range(100):
        ordered.put(b"%04d" % number, b"")
    frozen = ordered.freeze()
    ordered.put(b"0050", b"changed")
    assert sum(block not in frozen._blocks for block in ordered._blocks) == 1
