"""A cache of parsed scripts: the traversals last used, by their text and the names of their bindings.

Values of bindings are no part of the key, so that a client that binds its values pays for a script once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Parsed = TypeVar("Parsed")

# A tree takes about ten times its text in memory, so a full cache takes 40 MiB.
ENTRIES_MAX = 2_000
TEXT_BYTES_MAX = 4 * 1024 * 1024

_Key = tuple[str, frozenset[str]]


class ParseCache(Generic[Parsed]):
    """Results of a function of text and binding names, bounded by their number and by the bytes of their texts.

    Refusals are not kept: they are rare in honest use, and a client that sends many different ones must not push out
    the scripts of others.
    """

    __slots__ = ("_bytes", "_entries", "_entries_max", "_make", "_text_bytes_max")

    def __init__(
        self,
        make: Callable[[str, frozenset[str]], Parsed],
        *,
        entries_max: int = ENTRIES_MAX,
        text_bytes_max: int = TEXT_BYTES_MAX,
    ) -> None:
        self._make = make
        self._entries: OrderedDict[_Key, Parsed] = OrderedDict()
        self._entries_max = entries_max
        self._text_bytes_max = text_bytes_max
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def text_bytes(self) -> int:
        """The bytes of all keys."""
        return self._bytes

    def get(self, text: str, bound: frozenset[str]) -> Parsed:
        """Return the result for a text, made now or earlier."""
        key = (text, bound)
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
            return found
        made = self._make(text, bound)
        self._entries[key] = made
        self._bytes += _size(key)
        while self._entries and (len(self._entries) > self._entries_max or self._bytes > self._text_bytes_max):
            oldest, _ = self._entries.popitem(last=False)
            self._bytes -= _size(oldest)
        return made


def _size(key: _Key) -> int:
    text, bound = key
    # Four bytes a character at most; the names come with every request, and may be many.
    return (len(text) if text.isascii() else 4 * len(text)) + sum(map(len, bound))
