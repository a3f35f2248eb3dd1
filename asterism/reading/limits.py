"""How much one query may ask for, and what all of them may keep together. The limits of texts and trees stand with the
parser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, cast

from asterism.errors import QueryMemoryInUse, QueryTookTooLong, TooLarge
from asterism.limits import MIB
from asterism.reading.turns import pause

# Rows that FROM may make of one item, those of subqueries counted in: the largest item is an array of about this many
# numbers, so one array always passes, and the product of two large ones does not hold up everybody else.
ROWS_PER_ITEM_MAX: Final = 1_000_000
# Work on one item, in steps of at most about a microsecond: a row is a step, and functions whose work grows with their
# arguments say how many theirs is (`functions/costs.py`). A million rows with a long filter pass.
STEPS_PER_ITEM_MAX: Final = 20_000_000
# The same by the clock, for what the steps do not foresee; calls of users' functions in other processes count. The
# service, too, gives a page five seconds.
SECONDS_PER_ITEM_MAX: Final = 5.0
# Steps between two looks at the clock.
_STEPS_BETWEEN_LOOKS: Final = 500
# A row of a query costs a step, and one more for so many nodes of the query's tree, all of which may be evaluated.
_NODES_PER_STEP: Final = 16
# What one query may have in memory at a time, by rough count: what ORDER BY, DISTINCT, GROUP BY and lists keep until
# the last item is read, and what the expressions of one row are made of.
COLLECTED_BYTES_MAX: Final = 192 * MIB
# One result is written as one text. Its parts may be shared, so that the text is far larger than what it takes in
# memory. A page has 4 MB, unless a single result is larger.
RESULT_BYTES_MAX: Final = 32 * MIB
# The service takes 4,294,967,295 for TOP, OFFSET and LIMIT and refuses the number after it.
COUNT_MAX: Final = 2**32 - 1
# The service allows ten unless asked for more; this many still compile in a millisecond.
JOINS_MAX: Final = 50

# A query takes memory of the process in portions of this size, so that most take none.
_PORTION_BYTES: Final = MIB
# Clients wait this long before they ask again; most collections are over by then.
_RETRY_AFTER_SECONDS: Final = 1.0
# Of a value whose parts are compared, and of one whose parts are counted.
_COMPARED_BYTES_PER_STEP: Final = 100
BYTES_PER_STEP: Final = 2_000

_OBJECT_BYTES: Final = 64
_PROPERTY_BYTES: Final = 100
_ELEMENT_BYTES: Final = 8
_SCALAR_BYTES: Final = 32
# A key of a scalar, and its place in a set.
_KEY_BYTES: Final = 128


class QueryMemory:
    """What all queries of the process may keep together. One per process; see `Limits.query_memory_bytes_max`."""

    __slots__ = ("bytes_left", "bytes_max")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_left = bytes_max

    @property
    def held_bytes(self) -> int:
        return self.bytes_max - self.bytes_left

    def take(self, size_bytes: int) -> None:
        """Raises QueryMemoryInUse when there is not so much left."""
        if size_bytes > self.bytes_left:
            raise QueryMemoryInUse(retry_after_seconds=_RETRY_AFTER_SECONDS)
        self.bytes_left -= size_bytes

    def give_back(self, size_bytes: int) -> None:
        self.bytes_left += size_bytes


class QueryAccount:
    """What one query has in memory. Gives back to the process what it took when the last that refers to it is gone:
    a query that ends, fails or is abandoned, and a collection that is kept for the next page and expires."""

    __slots__ = ("_memory", "_taken_bytes", "bytes_left")

    def __init__(self, memory: QueryMemory | None = None) -> None:
        self.bytes_left = COLLECTED_BYTES_MAX
        self._memory = memory
        self._taken_bytes = 0

    @property
    def held_bytes(self) -> int:
        return COLLECTED_BYTES_MAX - self.bytes_left

    def draw_on(self, memory: QueryMemory) -> None:
        """Takes what it needs from the memory of the process. Not to be called while something is held."""
        if self._memory is None:
            self._memory = memory

    def take(self, size_bytes: int) -> None:
        """Raises TooLarge when the query would have too much, QueryMemoryInUse when all queries together would."""
        self.bytes_left -= size_bytes
        if self.bytes_left < 0:
            raise TooLarge(what="memory that the query needs", bytes_max=COLLECTED_BYTES_MAX)
        if self._memory is not None and COLLECTED_BYTES_MAX - self.bytes_left > self._taken_bytes + _PORTION_BYTES:
            self._memory.take(self.held_bytes - self._taken_bytes)
            self._taken_bytes = self.held_bytes

    def give_back(self, size_bytes: int) -> None:
        self.bytes_left += size_bytes
        if self._memory is not None and self._taken_bytes > self.held_bytes + _PORTION_BYTES:
            self._memory.give_back(self._taken_bytes - self.held_bytes)
            self._taken_bytes = self.held_bytes

    def __del__(self) -> None:
        if self._memory is not None:
            self._memory.give_back(self._taken_bytes)


class Stopwatch(Protocol):
    """Counts the seconds that evaluations have taken, without those in which others were answered."""

    seconds: float


class QueryMeter:
    """Counts what the evaluation of one query does: rows, steps of work and bytes made of one item, and all together.

    One per compiled query. It raises when an item needs too much, and gives others their turn between steps.
    """

    __slots__ = (
        "_built_bytes",
        "_item_ends_at_seconds",
        "_item_ends_at_steps",
        "_look_at_steps",
        "_stopwatch",
        "account",
        "bytes_built",
        "has_worked",
        "is_needed",
        "item_steps_max",
        "row_steps",
        "rows_left",
        "steps",
    )

    def __init__(self) -> None:
        self.account = QueryAccount()
        # Whether the query can do or make much of one item; set while it is compiled.
        self.is_needed = False
        self.rows_left = ROWS_PER_ITEM_MAX
        # Whether anything was counted since the item at hand was begun.
        self.has_worked = False
        # All steps, and the bytes of all that was built, for the charge.
        self.steps = 0
        self.bytes_built = 0
        # What a row costs; see `weigh`.
        self.row_steps = 1
        # Bytes that the row at hand has built, given back with it.
        self._built_bytes = 0
        self._look_at_steps = _STEPS_BETWEEN_LOOKS
        self.item_steps_max = STEPS_PER_ITEM_MAX
        self._item_ends_at_steps = self.item_steps_max
        self._item_ends_at_seconds = SECONDS_PER_ITEM_MAX
        self._stopwatch: Stopwatch | None = None

    def weigh(self, nodes: int) -> None:
        """Takes the number of nodes of the query's tree, which make a row dearer."""
        self.row_steps = 1 + nodes // _NODES_PER_STEP

    def allow(self, item_steps: int) -> None:
        """Allows so much work for an item: less than usual where it is not done in turns."""
        self.item_steps_max = item_steps
        self._begin_item()

    def watch(self, stopwatch: Stopwatch) -> None:
        """Goes by this stopwatch from now on."""
        self._stopwatch = stopwatch
        self._begin_item()

    def restart(self) -> None:
        """A new item is read."""
        # Nothing was done for the item before: this is called for every item of a scan.
        if self.has_worked:
            self._begin_item()

    def _begin_item(self) -> None:
        self.has_worked = False
        self.rows_left = ROWS_PER_ITEM_MAX
        self._item_ends_at_steps = self.steps + self.item_steps_max
        if self._stopwatch is not None:
            self._item_ends_at_seconds = self._stopwatch.seconds + SECONDS_PER_ITEM_MAX
        if self._built_bytes:
            self.give_back_to(0)

    # --- work -------------------------------------------------------------------------------------------------------

    def row(self) -> None:
        """Counts one more row. Raises TooLarge, and what `spend` raises."""
        self.rows_left -= 1
        self.has_worked = True
        if self.rows_left < 0:
            raise TooLarge(what="query", bytes_max=ROWS_PER_ITEM_MAX)
        self.steps += self.row_steps
        if self.steps > self._look_at_steps:
            self._look()

    def spend(self, steps: int) -> None:
        """Counts steps, before they are done. Raises QueryTookTooLong."""
        self.has_worked = True
        self.steps += steps
        if self.steps > self._look_at_steps:
            self._look()

    def _look(self) -> None:
        self._look_at_steps = self.steps + _STEPS_BETWEEN_LOOKS
        if self.steps > self._item_ends_at_steps:
            raise QueryTookTooLong
        pause()
        if self._stopwatch is not None and self._stopwatch.seconds > self._item_ends_at_seconds:
            raise QueryTookTooLong

    # --- bytes ------------------------------------------------------------------------------------------------------

    def build(self, size_bytes: int) -> None:
        """Counts bytes that are kept until the row at hand is done with. Raises what `QueryAccount.take` raises."""
        self.has_worked = True
        self._built_bytes += size_bytes
        self.bytes_built += size_bytes
        self.account.take(size_bytes)

    @property
    def mark(self) -> int:
        """What to `give_back_to` when what is built from now on is not needed any more."""
        return self._built_bytes

    def give_back_to(self, mark: int) -> None:
        if self._built_bytes != mark:
            self.account.give_back(self._built_bytes - mark)
            self._built_bytes = mark

    def build_value(self, value: object) -> object:
        """The value, its parts counted as built."""
        kind = type(value)
        if kind is str:
            self.build(_OBJECT_BYTES + len(cast(str, value)))
        elif kind is list or kind is dict:
            self.build(self.size_of(value))
        return value

    def size_of(self, value: object, size_max: int = COLLECTED_BYTES_MAX) -> int:
        """About how much memory the value takes, counted to a little above `size_max`; the counting is work, too."""
        size = rough_bytes(value, size_max)
        self.spend(size // BYTES_PER_STEP)
        return size

    def spend_on_parts(self, value: object) -> None:
        """Counts the work of comparing or ordering the value, which may be an array or an object."""
        if type(value) is list or type(value) is dict:
            self.spend(self.size_of(value) // _COMPARED_BYTES_PER_STEP)

    def check_result(self, result: object) -> None:
        """Raises TooLarge for a result whose text would be too long."""
        if type(result) in (list, dict) and self.size_of(result, RESULT_BYTES_MAX) > RESULT_BYTES_MAX:
            raise TooLarge(what="result of the query", bytes_max=RESULT_BYTES_MAX)


class MemoryMeter:
    """Counts, roughly, what a collector keeps until the last item is read; all is given back when it is gone."""

    __slots__ = ("_account", "held_bytes")

    def __init__(self, account: QueryAccount | None = None) -> None:
        self._account = account or QueryAccount()
        self.held_bytes = 0

    def hold(self, value: object) -> None:
        """One more value is kept. Raises TooLarge and QueryMemoryInUse."""
        size = rough_bytes(value, self._account.bytes_left)
        self.held_bytes += size
        self._account.take(size)

    def hold_with_key(self, value: object) -> None:
        """One more value is kept, and a key by which it is found: of an array or an object, as large as that."""
        self.hold(value)
        if type(value) is list or type(value) is dict:
            self.hold(value)
        else:
            self.held_bytes += _KEY_BYTES
            self._account.take(_KEY_BYTES)

    def release(self, value: object) -> None:
        """A value that was held is kept no longer."""
        size = rough_bytes(value)
        self.held_bytes -= size
        self._account.give_back(size)

    def __del__(self) -> None:
        self._account.give_back(self.held_bytes)


def rough_bytes(value: object, size_max: int = COLLECTED_BYTES_MAX) -> int:
    """About how much memory a JSON value takes, as if it shared no part; counted to a little above `size_max`."""
    kind = type(value)
    if kind is not dict and not isinstance(value, list | tuple):
        return _OBJECT_BYTES + (len(value) if isinstance(value, str) else 0)
    total = 0
    waiting: list[object] = [value]
    # Without recursion: parts that are shared a million times, and what is nested deep, end at the limit as well.
    while waiting and total <= size_max:
        holder = waiting.pop()
        if type(holder) is dict:
            held: Iterable[object] = holder.values()
            total += _OBJECT_BYTES + _PROPERTY_BYTES * len(holder)
        else:
            held = cast("list[object]", holder)
            total += _OBJECT_BYTES + _ELEMENT_BYTES * len(held)
        for part in held:
            kind = type(part)
            if kind is str:
                total += _OBJECT_BYTES + len(cast(str, part))
            elif kind is dict or kind is list or isinstance(part, tuple):
                waiting.append(part)
            else:
                total += _SCALAR_BYTES
    return total
