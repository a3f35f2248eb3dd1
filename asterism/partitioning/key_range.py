"""An interval of the hash line, from "" to "FF" in the service's text."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.errors import MalformedRequest


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Half open: `start` is in it, `end` is not."""

    start: bytes
    end: bytes

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise ValueError("a key range ends before it starts")

    @classmethod
    def from_texts(cls, start: str, end: str) -> KeyRange:
        """Read the texts of a request."""
        start_point, end_point = point_from_text(start), point_from_text(end)
        if start_point > end_point:
            raise MalformedRequest(reason="The effective partition key range ends before it starts.")
        return cls(start_point, end_point)

    def contains(self, point: bytes) -> bool:
        return self.start <= point < self.end

    def intersection(self, other: KeyRange) -> KeyRange | None:
        start, end = max(self.start, other.start), min(self.end, other.end)
        return KeyRange(start, end) if start < end else None

    def is_within(self, other: KeyRange) -> bool:
        return other.start <= self.start and self.end <= other.end

    def to_texts(self) -> tuple[str, str]:
        return point_to_text(self.start), point_to_text(self.end)


FULL = KeyRange(b"", b"\xff")


def point_to_text(point: bytes) -> str:
    """Return the point in upper-case hexadecimal, as the clients compare the raw texts."""
    return point.hex().upper()


def point_from_text(text: str) -> bytes:
    """Read a point. A text of odd length gains a 0 at its end: whole points sort the same around "1" and "10"."""
    if not text.isascii() or (text and not text.isalnum()):
        raise MalformedRequest(reason="An effective partition key is not hexadecimal.")
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else text + "0")
    except ValueError:
        raise MalformedRequest(reason="An effective partition key is not hexadecimal.") from None
