"""The order of header names in a signed text: the one that the storage services use, which is not that of ASCII.

At first glance a name has no hyphens and apostrophes, and its other characters sort as `_RANKS` lists them; the hyphens
decide between names that are equal without them. Clients sort in this way, or by ASCII, and the two differ for names
of metadata such as `a_b` and `a1`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

# The characters of lower-case header names that count at first glance, the lowest first.
_RANKS: Final = {character: rank for rank, character in enumerate("!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz")}
# Those that count at second glance.
_SECOND_RANKS: Final = {"'": 1, "-": 2}
# Longer names are sorted and not kept.
_KEPT_CHARACTERS_MAX: Final = 128

SortKey = tuple[tuple[int, ...], tuple[int, ...]]


def service_order(names: Iterable[str]) -> list[str]:
    """Return lower-case header names in the order of the services."""
    return sorted(names, key=_key)


def _key(name: str) -> SortKey:
    return _kept_key(name) if len(name) <= _KEPT_CHARACTERS_MAX else _sort_key(name)


def _sort_key(name: str) -> SortKey:
    first = tuple(_RANKS[character] for character in name if character in _RANKS)
    return first, tuple(_SECOND_RANKS.get(character, 0) for character in name)


_kept_key = lru_cache(maxsize=1024)(_sort_key)
