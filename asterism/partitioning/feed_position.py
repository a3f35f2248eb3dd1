"""The position of a reader of a change feed: for every point of the hash line, the LSN up to which it has seen.

Partitions count their LSNs apart from each other, so one number is enough only while a reader stays in one partition
(or in the children of one, whose LSNs go on where the parent's ended). Over several partitions the position is a step
function on the line. It names no partition, so it stays true through any splits and merges.

Clients keep a position as the text of an etag, and the older form of the Python client takes it for one of its own only
if it is made of digits. One step is its LSN; several are written behind `00`, with which no number begins. A reader
that begins at a time sends it once; the position keeps it, behind `01`, in front of the rest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from asterism.errors import MalformedRequest
from asterism.values.identifiers import Lsn

_STEPS_MARK = "00"
_SINCE_MARK = "01"
_SINCE_LENGTH_DIGITS = 2
_START_LENGTH_DIGITS = 3
_LSN_LENGTH_DIGITS = 2
# No partition ever gets there; what follows the largest LSN must still fit in its eight bytes.
_LSN_MAX = 2**63
# A start has at most 48 bytes (three levels of 16) in sound positions; version 1 keys are longer, and bounds of ranges
# are never longer than the keys.
_START_BYTES_MAX = 400
_TEXT_CHARACTERS_MAX = 60_000

Step = tuple[bytes, Lsn]


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """Steps of (start, LSN), the first at the very beginning of the line; each reaches to the start of the next."""

    steps: tuple[Step, ...]
    # Changes before this second are left out; None leaves out nothing.
    since_wall_seconds: int | None = None
    _starts: tuple[bytes, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", tuple(start for start, _ in self.steps))

    @classmethod
    def at(cls, lsn: Lsn) -> FeedPosition:
        """Return the position with the same LSN everywhere."""
        return cls(((b"", lsn),))

    def lsn_at(self, point: bytes) -> Lsn:
        return self.steps[bisect_right(self._starts, point) - 1][1]

    def least(self, start: bytes, end: bytes) -> Lsn:
        """Return the lowest LSN anywhere in [start, end)."""
        return min(lsn for _, lsn in self._steps_in(start, end))

    def is_level(self, start: bytes, end: bytes) -> bool:
        """Return whether one LSN holds in all of [start, end)."""
        return len({lsn for _, lsn in self._steps_in(start, end)}) == 1

    def _steps_in(self, start: bytes, end: bytes) -> tuple[Step, ...]:
        first = bisect_right(self._starts, start) - 1
        return self.steps[first : max(first + 1, bisect_left(self._starts, end))]

    def advanced(self, start: bytes, end: bytes, lsn: Lsn) -> FeedPosition:
        """Return the position after everything up to `lsn` in [start, end) was seen; no LSN ever falls."""
        if start >= end:
            return self
        before = [step for step in self.steps if step[0] < start]
        inside = [(max(start, at), max(lsn, seen)) for at, seen in self._steps_in(start, end)]
        after = [(end, self.lsn_at(end)), *(step for step in self.steps if step[0] > end)]
        return replace(self, steps=_joined([*before, *inside, *after]))

    def within(self, start: bytes, end: bytes) -> FeedPosition:
        """Return the position without the steps outside of [start, end), which its reader never asks for."""
        inside = self._steps_in(start, end)
        return replace(self, steps=_joined([(b"", inside[0][1]), *inside[1:]]))

    def since(self, wall_seconds: int) -> FeedPosition:
        """Return the same position of a reader that wants nothing older than a time."""
        return replace(self, since_wall_seconds=max(wall_seconds, 0))

    def to_text(self) -> str:
        text = "" if self.since_wall_seconds is None else _since_text(self.since_wall_seconds)
        if len(self.steps) == 1:
            return text + str(self.steps[0][1])
        return text + _STEPS_MARK + "".join(_step_text(step) for step in self.steps)

    @classmethod
    def from_text(cls, text: str) -> FeedPosition:
        """Return the position that a text spells; MalformedRequest if it spells none."""
        if not text.isascii() or not text.isdigit() or len(text) > _TEXT_CHARACTERS_MAX:
            raise _refusal()
        since = None
        if text.startswith(_SINCE_MARK):
            since_text, at = _field(text, len(_SINCE_MARK), _SINCE_LENGTH_DIGITS)
            since, text = int(since_text), text[at:]
        if text.startswith(_STEPS_MARK):
            return cls(_steps_of(text[len(_STEPS_MARK) :]), since)
        return cls(((b"", _lsn_of(text)),), since)


def _joined(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps without those that repeat the LSN of the step before."""
    kept: list[Step] = []
    for step in steps:
        if not kept or kept[-1][1] != step[1]:
            kept.append(step)
    return tuple(kept)


def _since_text(wall_seconds: int) -> str:
    text = str(wall_seconds)
    return f"{_SINCE_MARK}{len(text):0{_SINCE_LENGTH_DIGITS}}{text}"


def _step_text(step: Step) -> str:
    start, lsn = step
    # The 1 in front keeps the zeros that a start may begin with.
    start_text = str(int.from_bytes(b"\x01" + start, "big"))
    lsn_text = str(lsn)
    return f"{len(start_text):0{_START_LENGTH_DIGITS}}{start_text}{len(lsn_text):0{_LSN_LENGTH_DIGITS}}{lsn_text}"


def _steps_of(text: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    at = 0
    while at < len(text):
        start_text, at = _field(text, at, _START_LENGTH_DIGITS)
        lsn_text, at = _field(text, at, _LSN_LENGTH_DIGITS)
        steps.append((_start_of(start_text), _lsn_of(lsn_text)))
    starts = [start for start, _ in steps]
    if not starts or starts[0] != b"" or any(left >= right for left, right in pairwise(starts)):
        raise _refusal()
    return tuple(steps)


def _field(text: str, at: int, length_digits: int) -> tuple[str, int]:
    begins = at + length_digits
    length_text = text[at:begins]
    ends = begins + int(length_text or 0)
    if len(length_text) < length_digits or ends > len(text) or ends == begins:
        raise _refusal()
    return text[begins:ends], ends


def _start_of(text: str) -> bytes:
    number = int(text)
    encoded = number.to_bytes((number.bit_length() + 7) // 8, "big")
    if not encoded.startswith(b"\x01") or len(encoded) > _START_BYTES_MAX:
        raise _refusal()
    return encoded[1:]


def _lsn_of(text: str) -> Lsn:
    lsn = int(text) if 0 < len(text) <= len(str(_LSN_MAX)) else _LSN_MAX
    if lsn >= _LSN_MAX:
        raise _refusal()
    return Lsn(lsn)


def _refusal() -> MalformedRequest:
    return MalformedRequest(
        reason="The value specified for the header 'if-none-match' is invalid: it is not a position in a change feed "
        "that this server has issued."
    )
