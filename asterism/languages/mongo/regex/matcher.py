"""A matcher that backtracks, for what RE2 does not have: looking around, back references, possessive quantifiers.

A pattern can take time that grows exponentially with the text. So every step is counted, and a search that needs too
many is given up. A node is compiled to a function of the state and a place in the text, which calls the function of
what comes next; it returns the place where the match ends, or -1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from asterism.languages.mongo.regex.nodes import (
    Anchor,
    AtomicGroup,
    BackReference,
    Character,
    CharacterSet,
    Choice,
    Conditional,
    Group,
    Look,
    MatchStart,
    Mode,
    Node,
    Pattern,
    Place,
    Repeat,
    Sequence,
    width,
)
from asterism.languages.mongo.regex.re2_form import compile_form

# About a second of work.
STEPS_MAX: Final = 1_000_000
_FAILED: Final = -1

Span = tuple[int, int]
Holds = Callable[[str], bool]


class LimitExceeded(Exception):
    """Raised when a search takes too many steps."""


class Found(NamedTuple):
    start: int
    end: int
    # The places of the groups, None for one that took no part.
    spans: tuple[Span | None, ...]


class _State:
    __slots__ = ("counts", "lasts", "match_start", "openings", "search_start", "spans", "steps", "text")

    def __init__(self, text: str, search_start: int, group_count: int, loop_count: int) -> None:
        self.text = text
        self.search_start = search_start
        self.match_start = -1
        self.spans: list[Span | None] = [None] * (group_count + 1)
        self.openings = [0] * (group_count + 1)
        self.counts = [0] * loop_count
        self.lasts = [-1] * loop_count
        self.steps = STEPS_MAX

    def count_steps(self, number: int = 1) -> None:
        self.steps -= number
        if self.steps < 0:
            raise LimitExceeded


Step = Callable[[_State, int], int]


def _accept(_state: _State, place: int) -> int:
    return place


@lru_cache(maxsize=2048)
def _membership(form: str, ignores_case: bool) -> Holds:
    """A test whether a character is in a set; answers are remembered, because a text has few different ones."""
    matches = compile_form(f"(?i:{form})" if ignores_case else form).fullmatch
    known: dict[str, bool] = {}

    def holds(character: str) -> bool:
        answer = known.get(character)
        if answer is None:
            if len(known) > 10_000:
                known.clear()
            answer = known[character] = matches(character) is not None
        return answer

    return holds


class Matcher:
    """A compiled pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self._loop_count = 0
        self._group_count = pattern.group_count
        self._start = self._compile(pattern.root, _accept)

    def search(self, text: str, start: int) -> Found | None:
        """The first match that begins at `start` or later. Raises LimitExceeded."""
        state = _State(text, start, self._group_count, self._loop_count)
        try:
            for place in range(start, len(text) + 1):
                state.count_steps()
                end = self._start(state, place)
                if end != _FAILED:
                    begin = place if state.match_start < 0 else state.match_start
                    return Found(begin, end, tuple(state.spans[1:]))
        except RecursionError:
            raise LimitExceeded from None
        return None

    def _compile(self, node: Node, following: Step) -> Step:
        step: Step
        match node:
            case Character() | CharacterSet():
                return _one_character(_test_of(node), following)
            case Anchor():
                return _anchor(node, following)
            case MatchStart():
                return _match_start(following)
            case Group(body=body, number=None):
                return self._compile(body, following)
            case Group(body=body, number=int(number)):
                return self._capture(body, number, following)
            case AtomicGroup(body=body):
                return _atomic(self._compile(body, _accept), following)
            case Look():
                return self._look(node, following)
            case Repeat():
                return self._repeat(node, following)
            case BackReference(number=number, ignores_case=ignores_case):
                return _back_reference(number, ignores_case, following)
            case Conditional():
                return self._conditional(node, following)
            case Sequence(items=items):
                step = following
                for item in reversed(items):
                    step = self._compile(item, step)
                return step
            case Choice(branches=branches):
                return _choice([self._compile(branch, following) for branch in branches])
            case _:
                raise AssertionError(node)

    def _capture(self, body: Node, number: int, following: Step) -> Step:
        def close(state: _State, place: int) -> int:
            before = state.spans[number]
            state.spans[number] = (state.openings[number], place)
            end = following(state, place)
            if end == _FAILED:
                state.spans[number] = before
            return end

        inside = self._compile(body, close)

        def enter(state: _State, place: int) -> int:
            before = state.openings[number]
            state.openings[number] = place
            end = inside(state, place)
            if end == _FAILED:
                state.openings[number] = before
            return end

        return enter

    def _holds(self, look: Look) -> Callable[[_State, int], bool]:
        branches = look.body.branches if isinstance(look.body, Choice) else (look.body,)
        tests = [(self._compile(branch, _accept), width(branch) or 0 if look.is_behind else 0) for branch in branches]

        def holds(state: _State, place: int) -> bool:
            before = state.spans[:]
            for test, back in tests:
                state.count_steps()
                if place >= back and test(state, place - back) != _FAILED:
                    if look.is_negative:
                        state.spans[:] = before
                    return not look.is_negative
            return look.is_negative

        return holds

    def _look(self, look: Look, following: Step) -> Step:
        holds = self._holds(look)

        def step(state: _State, place: int) -> int:
            before = state.spans[:]
            if not holds(state, place):
                return _FAILED
            end = following(state, place)
            if end == _FAILED:
                state.spans[:] = before
            return end

        return step

    def _conditional(self, node: Conditional, following: Step) -> Step:
        yes, no = self._compile(node.yes, following), self._compile(node.no, following)
        if isinstance(node.condition, Look):
            holds = self._holds(node.condition)
            return lambda state, place: (yes if holds(state, place) else no)(state, place)
        number = node.condition
        return lambda state, place: (no if state.spans[number] is None else yes)(state, place)

    def _repeat(self, node: Repeat, following: Step) -> Step:
        if node.mode is Mode.POSSESSIVE:
            greedy = Repeat(node.body, node.least, node.most, Mode.GREEDY)
            return _atomic(self._compile(greedy, _accept), following)
        if isinstance(node.body, (Character, CharacterSet)):
            return _repeat_character(_test_of(node.body), node, following)
        return self._repeat_group(node, following)

    def _repeat_group(self, node: Repeat, following: Step) -> Step:
        loop = self._loop_count
        self._loop_count += 1
        least, most, is_greedy = node.least, node.most, node.mode is Mode.GREEDY

        def again(state: _State, place: int) -> int:
            state.count_steps()
            count, last = state.counts[loop], state.lasts[loop]
            # A turn that took nothing would be repeated forever.
            may_continue = (most is None or count < most) and not (count >= least and place == last)
            if not is_greedy and count >= least:
                end = following(state, place)
                if end != _FAILED:
                    return end
            if may_continue:
                state.counts[loop], state.lasts[loop] = count + 1, place
                end = inside(state, place)
                if end != _FAILED:
                    return end
                state.counts[loop], state.lasts[loop] = count, last
            if is_greedy and count >= least:
                return following(state, place)
            return _FAILED

        inside = self._compile(node.body, again)

        def enter(state: _State, place: int) -> int:
            before = state.counts[loop], state.lasts[loop]
            state.counts[loop], state.lasts[loop] = 0, -1
            end = again(state, place)
            if end == _FAILED:
                state.counts[loop], state.lasts[loop] = before
            return end

        return enter


def _test_of(node: Character | CharacterSet) -> Holds:
    if isinstance(node, Character):
        if not node.ignores_case:
            return node.text.__eq__
        return _membership(f"\\x{{{ord(node.text):x}}}", True)
    return _membership(node.form, node.ignores_case)


def _one_character(holds: Holds, following: Step) -> Step:
    def step(state: _State, place: int) -> int:
        if place < len(state.text) and holds(state.text[place]):
            return following(state, place + 1)
        return _FAILED

    return step


def _repeat_character(holds: Holds, node: Repeat, following: Step) -> Step:
    least, most = node.least, node.most

    def greedy(state: _State, place: int) -> int:
        text = state.text
        stop = len(text) if most is None else min(len(text), place + most)
        end = place
        while end < stop and holds(text[end]):
            end += 1
        state.count_steps(end - place + 1)
        while end >= place + least:
            result = following(state, end)
            if result != _FAILED:
                return result
            state.count_steps()
            end -= 1
        return _FAILED

    def lazy(state: _State, place: int) -> int:
        text = state.text
        stop = len(text) if most is None else min(len(text), place + most)
        end = place
        while True:
            state.count_steps()
            if end >= place + least:
                result = following(state, end)
                if result != _FAILED:
                    return result
            if end >= stop or not holds(text[end]):
                return _FAILED
            end += 1

    return greedy if node.mode is Mode.GREEDY else lazy


def _choice(steps: list[Step]) -> Step:
    def step(state: _State, place: int) -> int:
        for branch in steps:
            state.count_steps()
            end = branch(state, place)
            if end != _FAILED:
                return end
        return _FAILED

    return step


def _atomic(inside: Step, following: Step) -> Step:
    def step(state: _State, place: int) -> int:
        state.count_steps()
        before = state.spans[:]
        middle = inside(state, place)
        if middle == _FAILED:
            return _FAILED
        end = following(state, middle)
        if end == _FAILED:
            state.spans[:] = before
        return end

    return step


def _match_start(following: Step) -> Step:
    def step(state: _State, place: int) -> int:
        before = state.match_start
        state.match_start = place
        end = following(state, place)
        if end == _FAILED:
            state.match_start = before
        return end

    return step


def _back_reference(number: int, ignores_case: bool, following: Step) -> Step:
    def step(state: _State, place: int) -> int:
        span = state.spans[number]
        if span is None:
            return _FAILED
        captured = state.text[span[0] : span[1]]
        state.count_steps(len(captured) + 1)
        end = place + len(captured)
        here = state.text[place:end]
        if here == captured or (ignores_case and here.casefold() == captured.casefold()):
            return following(state, end)
        return _FAILED

    return step


def _anchor(anchor: Anchor, following: Step) -> Step:
    if anchor.place in (Place.WORD_BOUNDARY, Place.NO_WORD_BOUNDARY):
        holds = _is_boundary(_membership(anchor.word, False), is_wanted=anchor.place is Place.WORD_BOUNDARY)
    else:
        holds = _PLACE_TESTS[anchor.place]
    return lambda state, place: following(state, place) if holds(state, place) else _FAILED


def _is_boundary(is_word: Holds, *, is_wanted: bool) -> Callable[[_State, int], bool]:
    def holds(state: _State, place: int) -> bool:
        text = state.text
        before = place > 0 and is_word(text[place - 1])
        after = place < len(text) and is_word(text[place])
        return (before != after) is is_wanted

    return holds


_PLACE_TESTS: Final[dict[Place, Callable[[_State, int], bool]]] = {
    Place.TEXT_START: lambda state, place: place == 0,
    Place.TEXT_END: lambda state, place: place == len(state.text),
    Place.LAST_LINE_END: lambda state, place: (
        place == len(state.text) or (place == len(state.text) - 1 and state.text[place] == "\n")
    ),
    Place.LINE_START: lambda state, place: place == 0 or state.text[place - 1] == "\n",
    Place.LINE_END: lambda state, place: place == len(state.text) or state.text[place] == "\n",
    Place.SEARCH_START: lambda state, place: place == state.search_start,
}
