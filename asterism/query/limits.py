"""How much one query may ask for. The limits of texts and trees stand with the parser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from asterism.errors import TooLarge
from asterism.limits import MIB

# Rows that FROM may make of one item, those of subqueries counted in: the largest item is an array of about this many
# numbers, so one array always passes, and the product of two large ones does not hold up everybody else.
ROWS_PER_ITEM_MAX: Final = 1_000_000
# What ORDER BY, DISTINCT, GROUP BY and lists may keep until the last item is read, by rough count.
COLLECTED_BYTES_MAX: Final = 128 * MIB
# The service takes 4,294,967,295 for TOP, OFFSET and LIMIT and refuses the number after it.
COUNT_MAX: Final = 2**32 - 1
# The service allows ten unless asked for more; this many still compile in a millisecond.
JOINS_MAX: Final = 50

_OBJECT_BYTES: Final = 64
_PROPERTY_BYTES: Final = 100
_ELEMENT_BYTES: Final = 8
_SCALAR_BYTES: Final = 32


class RowMeter:
    """Counts the rows made of one item, and stops a product that grows out of hand."""

    __slots__ = ("rows_left",)

    def __init__(self) -> None:
        self.rows_left = ROWS_PER_ITEM_MAX

    def restart(self) -> None:
        """A new item is read."""
        self.rows_left = ROWS_PER_ITEM_MAX

    def spend(self) -> None:
        """One more row. Raises TooLarge."""
        self.rows_left -= 1
        if self.rows_left < 0:
            raise TooLarge(what="query", bytes_max=ROWS_PER_ITEM_MAX)


class MemoryMeter:
    """Counts, roughly, what is kept until the last item is read."""

    __slots__ = ("bytes_left",)

    def __init__(self) -> None:
        self.bytes_left = COLLECTED_BYTES_MAX

    @property
    def held_bytes(self) -> int:
        return COLLECTED_BYTES_MAX - self.bytes_left

    def hold(self, value: object) -> None:
        """One more value is kept. Raises TooLarge."""
        self.bytes_left -= rough_bytes(value)
        if self.bytes_left < 0:
            raise TooLarge(what="query", bytes_max=COLLECTED_BYTES_MAX)

    def release(self, value: object) -> None:
        """A value that was held is kept no longer."""
        self.bytes_left += rough_bytes(value)


def rough_bytes(value: object) -> int:
    """About how much memory a JSON value takes."""
    kind = type(value)
    if kind is dict:
        held: Iterable[object] = cast("dict[str, object]", value).values()
        total = _OBJECT_BYTES + _PROPERTY_BYTES * len(cast("dict[str, object]", value))
    elif isinstance(value, list | tuple):
        held = value
        total = _OBJECT_BYTES + _ELEMENT_BYTES * len(value)
    else:
        return _OBJECT_BYTES + (len(value) if isinstance(value, str) else 0)
    for one in held:
        kind = type(one)
        if kind is str:
            total += _OBJECT_BYTES + len(cast(str, one))
        elif kind is int or kind is float or one is None:
            total += _SCALAR_BYTES
        else:
            total += rough_bytes(one)
    return total
