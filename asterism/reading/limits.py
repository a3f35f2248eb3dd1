"""Limits of one query, and of the memory that all queries share. The limits of texts and trees are in the parser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, cast

from asterism.errors import QueryMemoryInUse, QueryTookTooLong, TooLarge
from asterism.limits import MIB
from asterism.reading.turns import pause

# Rows that FROM may make of one item, those of subqueries counted in: the largest item is an array of about this many
# numbers, so one array always passes, and the product of two large ones does not delay other requests.
ROWS_PER_ITEM_MAX: Final = 1_000_000
# Work on one item, in steps of at most about a microsecond: a row is a step, and functions whose work grows with their
# arguments declare their steps (`functions/costs.py`). A million rows with a long filter pass.
STEPS_PER_ITEM_MAX: Final = 20_000_000
# The same by the clock, for work that the steps do not predict; calls of user-defined functions in other processes
# count. The service, too, gives a page five seconds.
SECONDS_PER_ITEM_MAX: Final = 5.0
# Steps between two checks of the clock.
_STEPS_BETWEEN_CHECKS: Final = 500
# A row of a query costs a step, and one more for this many nodes of the query's tree, all of which may be evaluated.
_NODES_PER_STEP: Final = 16
# Memory of one query at a time, by rough count: the values that ORDER BY, DISTINCT, GROUP BY and lists keep until the
# last item is read, and those that the expressions of one row build.
COLLECTED_BYTES_MAX: Final = 192 * MIB
# One result is written as one text. Its parts may be shared, so that the text is far larger than the result in memory.
# A page has 4 MB, unless a single result is larger.
RESULT_BYTES_MAX: Final = 32 * MIB
# The service takes 4,294,967,295 for TOP, OFFSET and LIMIT and refuses the number after it.
COUNT_MAX: Final = 2**32 - 1
# The service allows ten unless asked for more; this many still compile in a millisecond.
JOINS_MAX: Final = 50

# A query takes memory of the process in portions of this size, so that most take none.
_PORTION_BYTES: Final = MIB
# Clients wait this long before they retry; most collections have ended by then.
_RETRY_AFTER_SECONDS: Final = 1.0
# Bytes of a value whose parts are compared, and of one whose parts are counted.
_COMPARED_BYTES_PER_STEP: Final = 100
BYTES_PER_STEP: Final = 2_000

_OBJECT_BYTES: Final = 64
_PROPERTY_BYTES: Final = 100
_ELEMENT_BYTES: Final = 8
_SCALAR_BYTES: Final = 32
# A key of a scalar, and its place in a set.
_KEY_BYTES: Final = 128


class QueryMemory:
    """The memory that all queries of the process share. One per process; see `Limits.query_memory_bytes_max`."""

    __slots__ = ("bytes_left", "bytes_max")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_left = bytes_max

    @property
    def held_bytes(self) -> int:
        return self.bytes_max - self.bytes_left

    def take(self, size_bytes: int) -> None:
        """Take memory. Raises QueryMemoryInUse if less is left."""
        if size_bytes > self.bytes_left:
            raise QueryMemoryInUse(retry_after_seconds=_RETRY_AFTER_SECONDS)
        self.bytes_left -= size_bytes

    def give_back(self, size_bytes: int) -> None:
        self.bytes_left += size_bytes


class QueryAccount:
    """The memory of one query. It is given back to the process with the last reference to the account: that of a query
    that ends, fails or is abandoned, or of a collection that is kept for the next page and expires."""

    __slots__ = ("_memory", "_taken_bytes", "bytes_left")

    def __init__(self, memory: QueryMemory | None = None) -> None:
        self.bytes_left = COLLECTED_BYTES_MAX
        self._memory = memory
        self._taken_bytes = 0

    @property
    def held_bytes(self) -> int:
        return COLLECTED_BYTES_MAX - self.bytes_left

    def draw_on(self, memory: QueryMemory) -> None:
        """Take from the memory of the process from now on. Must not be called while something is held."""
        if self._memory is None:
            self._memory = memory

    def take(self, size_bytes: int) -> None:
        """Count bytes as held. Raises TooLarge if the query would hold too much, QueryMemoryInUse if all queries
        together would."""
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
    """A count of the seconds that evaluations have taken, without those in which other requests were answered."""

    seconds: float


class QueryMeter:
    """A meter of the evaluation of one query: rows, steps of work and bytes built, for one item and in total.

    One per compiled query. It raises when an item needs too much, and yields to other requests between steps.
    """

    __slots__ = (
        "_built_bytes",
        "_check_at_steps",
        "_item_ends_at_seconds",
        "_item_ends_at_steps",
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
        # True if the query can do much work or build much for one item; set while it is compiled.
        self.is_needed = False
        self.rows_left = ROWS_PER_ITEM_MAX
        # True if anything was counted since the current item was begun.
        self.has_worked = False
        # All steps, and the bytes of all that was built, for the charge.
        self.steps = 0
        self.bytes_built = 0
        # The cost of a row; see `weigh`.
        self.row_steps = 1
        # Bytes that the current row has built, given back with it.
        self._built_bytes = 0
        self._check_at_steps = _STEPS_BETWEEN_CHECKS
        self.item_steps_max = STEPS_PER_ITEM_MAX
        self._item_ends_at_steps = self.item_steps_max
        self._item_ends_at_seconds = SECONDS_PER_ITEM_MAX
        self._stopwatch: Stopwatch | None = None

    def weigh(self, nodes: int) -> None:
        """Set the cost of a row from the number of nodes of the query's tree."""
        self.row_steps = 1 + nodes // _NODES_PER_STEP

    def allow(self, item_steps: int) -> None:
        """Set the limit of work for an item: less than usual if it is not done in turns."""
        self.item_steps_max = item_steps
        self._begin_item()

    def watch(self, stopwatch: Stopwatch) -> None:
        """Use this stopwatch from now on."""
        self._stopwatch = stopwatch
        self._begin_item()

    def restart(self) -> None:
        """Begin a new item."""
        # This is called for every item of a scan, and most have needed no work.
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
        """Count one more row. Raises TooLarge, and the errors of `spend`."""
        self.rows_left -= 1
        self.has_worked = True
        if self.rows_left < 0:
            raise TooLarge(what="query", bytes_max=ROWS_PER_ITEM_MAX)
        self.steps += self.row_steps
        if self.steps > self._check_at_steps:
            self._check()

    def spend(self, steps: int) -> None:
        """Count steps, before they are done. Raises QueryTookTooLong."""
        self.has_worked = True
        self.steps += steps
        if self.steps > self._check_at_steps:
            self._check()

    def _check(self) -> None:
        self._check_at_steps = self.steps + _STEPS_BETWEEN_CHECKS
        if self.steps > self._item_ends_at_steps:
            raise QueryTookTooLong
        pause()
        if self._stopwatch is not None and self._stopwatch.seconds > self._item_ends_at_seconds:
            raise QueryTookTooLong

    # --- bytes ------------------------------------------------------------------------------------------------------

    def build(self, size_bytes: int) -> None:
        """Count bytes that are kept until the current row is done. Raises the errors of `QueryAccount.take`."""
        self.has_worked = True
        self._built_bytes += size_bytes
        self.bytes_built += size_bytes
        self.account.take(size_bytes)

    @property
    def mark(self) -> int:
        """The mark to `give_back_to` when values built from now on are not needed any more."""
        return self._built_bytes

    def give_back_to(self, mark: int) -> None:
        if self._built_bytes != mark:
            self.account.give_back(self._built_bytes - mark)
            self._built_bytes = mark

    def build_value(self, value: object) -> object:
        """Return the value, with its parts counted as built."""
        kind = type(value)
        if kind is str:
            self.build(_OBJECT_BYTES + len(cast(str, value)))
        elif kind is list or kind is dict:
            self.build(self.size_of(value))
        return value

    def size_of(self, value: object, size_max: int = COLLECTED_BYTES_MAX) -> int:
        """Return the approximate memory of the value, counted to a little above `size_max`; counting is work, too."""
        size = rough_bytes(value, size_max)
        self.spend(size // BYTES_PER_STEP)
        return size

    def spend_on_parts(self, value: object) -> None:
        """Count the work of comparing or ordering the value, which may be an array or an object."""
        if type(value) is list or type(value) is dict:
            self.spend(self.size_of(value) // _COMPARED_BYTES_PER_STEP)

    def check_result(self, result: object) -> None:
        """Raise TooLarge for a result whose text would be too long."""
        if type(result) in (list, dict) and self.size_of(result, RESULT_BYTES_MAX) > RESULT_BYTES_MAX:
            raise TooLarge(what="result of the query", bytes_max=RESULT_BYTES_MAX)


class MemoryMeter:
    """A rough count of the memory that a collector keeps until the last item is read; given back with the meter."""

    __slots__ = ("_account", "held_bytes")

    def __init__(self, account: QueryAccount | None = None) -> None:
        self._account = account or QueryAccount()
        self.held_bytes = 0

    def hold(self, value: object) -> None:
        """Count one more value as kept. Raises TooLarge and QueryMemoryInUse."""
        size = rough_bytes(value, self._account.bytes_left)
        self.held_bytes += size
        self._account.take(size)

    def hold_with_key(self, value: object) -> None:
        """Count one more value as kept, and the key that finds it: for an array or an object, as large as the value."""
        self.hold(value)
        if type(value) is list or type(value) is dict:
            self.hold(value)
        else:
            self.held_bytes += _KEY_BYTES
            self._account.take(_KEY_BYTES)

    def release(self, value: object) -> None:
        """Count a value as no longer kept."""
        size = rough_bytes(value)
        self.held_bytes -= size
        self._account.give_back(size)

    def __del__(self) -> None:
        self._account.give_back(self.held_bytes)


def rough_bytes(value: object, size_max: int = COLLECTED_BYTES_MAX) -> int:
    """Return the approximate memory of a JSON value, as if it shared no part; counted to a little above `size_max`."""
    kind = type(value)
    if kind is not dict and not isinstance(value, list | tuple):
        return _OBJECT_BYTES + (len(value) if isinstance(value, str) else 0)
    total = 0
    waiting: list[object] = [value]
    # Without recursion: parts that are shared a million times, and deep nesting, end at the limit as well.
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
