"""LIKE patterns: `%` any text, `_` any character, `[a-c]` one of a set, `[^a-c]` one outside it.

A pattern is cut at its `%` into pieces of fixed length. The first and the last are matched at the ends, the others are
searched from left to right, each as early as possible: no backtracking. Leading and trailing runs of `_` are offsets,
however long they are; only a piece with `_` between its characters is matched at every position, part by part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from asterism.errors import MalformedRequest
from asterism.reading.turns import pause

# Longer patterns are compiled for each text again.
_KEPT_CHARACTERS_MAX: Final = 1024
# Of a piece with sets, or with `_` between its characters: a piece of this size is compiled in a few milliseconds.
_MIXED_PIECE_PARTS_MAX: Final = 4096
# A character or set that is matched at a position of the text costs 1, and a run of `_` of at least this length costs
# more to begin than to step over. The cost between two pauses takes about a millisecond.
_LONG_RUN_MIN: Final = 16
_LONG_RUN_COST: Final = 50
_COST_BETWEEN_PAUSES: Final = 100_000
_COST_PER_STEP: Final = 100
_CHARACTERS_PER_STEP: Final = 1_000
_ANY: Final = "."


@dataclass(frozen=True, slots=True)
class _Piece:
    """The part of a pattern between two `%`: leading `_`, a core of characters, sets and inner `_`, trailing `_`."""

    before: int
    core: re.Pattern[str] | str
    core_length: int
    # The cost of matching the core at one position at most; zero for plain characters, which are searched at once.
    core_cost: int
    after: int

    @property
    def length(self) -> int:
        return self.before + self.core_length + self.after

    def matches_at(self, text: str, start: int) -> bool:
        """Return whether the piece matches at `start`, which must leave room for it."""
        position = start + self.before
        if isinstance(self.core, str):
            return text.startswith(self.core, position)
        return bool(self.core.match(text, position))

    def end_of_first(self, text: str, start: int, end: int) -> int | None:
        """Return the end of the first match between these positions, or None."""
        position, last = start + self.before, end - self.after - self.core_length
        if isinstance(self.core, str):
            found_at = text.find(self.core, position, last + self.core_length) if position <= last else -1
            return None if found_at < 0 else found_at + self.core_length + self.after
        window = max(1, _COST_BETWEEN_PAUSES // self.core_cost)
        while position <= last:
            pause()
            found = self.core.search(text, position, min(position + window - 1, last) + self.core_length)
            if found is not None:
                return found.end() + self.after
            position += window
        return None


class LikePattern:
    """A compiled pattern."""

    __slots__ = ("_cost", "_first", "_last", "_middle")

    def __init__(self, pattern: str, escape: str | None) -> None:
        """Compile `pattern`, in which the character after `escape` stands for itself."""
        self._first, *others = [_piece(units) for units in _pieces(pattern, escape)]
        self._last = others.pop() if others else None
        self._middle = others
        # A position at which a piece was tried is skipped by the next piece.
        self._cost = max([piece.core_cost for piece in others], default=0)

    def steps(self, text: str) -> int:
        """Return the steps that `matches` takes at most; see `limits.QueryMeter`."""
        return 1 + len(text) // _CHARACTERS_PER_STEP + len(text) * self._cost // _COST_PER_STEP

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches."""
        first, last = self._first, self._last
        if last is None:
            return len(text) == first.length and first.matches_at(text, 0)
        position, last_start = first.length, len(text) - last.length
        if position > last_start or not first.matches_at(text, 0) or not last.matches_at(text, last_start):
            return False
        for piece in self._middle:
            end = piece.end_of_first(text, position, last_start)
            if end is None:
                return False
            position = end
        return True


def like_pattern(pattern: str, escape: str | None) -> LikePattern:
    return _kept_pattern(pattern, escape) if len(pattern) <= _KEPT_CHARACTERS_MAX else LikePattern(pattern, escape)


_kept_pattern = lru_cache(maxsize=256)(LikePattern)


def _piece(units: list[tuple[bool, str]]) -> _Piece:
    """Return the piece of these units, each one character long: (is it a literal, the character or an expression)."""
    wild = [unit == (False, _ANY) for unit in units]
    before = wild.index(False) if False in wild else len(units)
    after = wild[::-1].index(False) if False in wild else 0
    core = units[before : len(units) - after]
    if all(is_literal for is_literal, _ in core):
        return _Piece(before, "".join([character for _, character in core]), len(core), 0, after)
    parts: list[str] = []
    run = cost = 0
    for is_literal, unit in core:
        if (is_literal, unit) == (False, _ANY):
            run += 1
            continue
        if run:
            parts += [_ANY] * run if run < _LONG_RUN_MIN else [f".{{{run}}}"]
            cost += _LONG_RUN_COST if run >= _LONG_RUN_MIN else 0
            run = 0
        parts.append(re.escape(unit) if is_literal else unit)
    if len(parts) > _MIXED_PIECE_PARTS_MAX:
        raise MalformedRequest(
            reason=f"The LIKE pattern is too long: between two % at most {_MIXED_PIECE_PARTS_MAX} characters, sets and "
            "runs of _ may be mixed. Split the part with %, or use plain characters only."
        )
    return _Piece(before, re.compile("".join(parts), re.DOTALL), len(core), len(parts) + cost, after)


def _pieces(pattern: str, escape: str | None) -> list[list[tuple[bool, str]]]:
    """Return the units of each piece of the pattern; see `_piece`."""
    pieces: list[list[tuple[bool, str]]] = [[]]
    position = 0
    # No set ends after it: unclosed brackets are not searched for an end one by one.
    last_bracket = pattern.rfind("]")
    while position < len(pattern):
        character = pattern[position]
        set_end = pattern.find("]", position + 2) if character == "[" and position + 2 <= last_bracket else -1
        if character == escape and position + 1 < len(pattern):
            position += 1
            pieces[-1].append((True, pattern[position]))
        elif character == "%":
            pieces.append([])
        elif character == "_":
            pieces[-1].append((False, _ANY))
        elif set_end != -1:
            pieces[-1].append((False, _character_set(pattern[position + 1 : set_end])))
            position = set_end
        else:
            pieces[-1].append((True, character))
        position += 1
    return pieces


def _character_set(members: str) -> str:
    negation = "^" if members.startswith("^") and len(members) > 1 else ""
    members = members[len(negation) :]
    parts = []
    position = 0
    while position < len(members):
        is_range = members[position + 1 : position + 2] == "-" and position + 2 < len(members)
        low, high = members[position], members[position + 2] if is_range else members[position]
        # A range that runs backward is empty.
        if low <= high:
            parts.append(f"{re.escape(low)}-{re.escape(high)}")
        position += 3 if is_range else 1
    empty = "." if negation else r"(?!)."
    return f"[{negation}{''.join(parts)}]" if parts else empty
