"""Open cursors of this process, and the batches that are answered from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from asterism.apis.mongo.arguments import NUMBER, as_int
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Answer, Command, FieldRule, Target
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import encode
from asterism.values.bson.raw_documents import document_of, element, join_array, text_value
from asterism.values.bson.types import Document, Int64

FIRST_BATCH_DOCUMENTS = 101
BATCH_BYTES_MAX = 16 * 1024 * 1024
IDLE_SECONDS_MAX = 600.0
_ID_BITS = 63
# The low bits of a cursor's id name the process that keeps it.
PLACE_BITS = 10
_AWAIT_SECONDS = 1.0

Slices = AsyncIterator[Sequence[bytes | Document]]
# Adds fields to the `cursor` of an answer, such as the resume token of a change stream. It is called with the number of
# documents of the last slice that were not answered yet.
Extra = Callable[[int], Document]


@dataclass(slots=True)
class Patience:
    """How long a source of documents waits for new ones. A getMore sets it; the first batch waits for nothing."""

    seconds: float = 0.0
    # True once the source has said that nothing follows.
    is_over: bool = False


@dataclass(slots=True)
class Cursor:
    """A source of documents with the ones that were read and not answered yet."""

    number: int
    namespace: str
    source: Slices
    account: str
    user: str
    session: bytes | None
    # Ends the wait of a source that waits for documents (a change stream): it yields an empty slice then.
    waits: bool = False
    never_times_out: bool = False
    extra: Extra | None = None
    unit_number: int | None = None
    pending: list[bytes | Document] = field(default_factory=list)
    is_finished: bool = False
    used_at: float = 0.0
    is_in_use: bool = False
    close: Callable[[], None] | None = None
    # Documents that are left of the limit of the command; None without one.
    left: int | None = None
    # Refuses to go on, for example with a collection that was dropped.
    verify: Callable[[], None] | None = None
    # How long a source waits for documents; None for one that does not wait.
    patience: Patience | None = None
    is_killed: bool = False
    # Returns an error of a getMore in the form in which clients are to see it.
    explain_failure: Callable[[Exception], Exception] | None = None
    # The rest of the time that the command allowed, in seconds of work; None without a limit.
    seconds_left: float | None = None

    async def take(self, documents_max: int | None, *, check_time: Callable[[], None] | None = None) -> list[bytes]:
        """Return the next documents, within the limits of a batch."""
        batch: list[bytes] = []
        size = 0
        while documents_max is None or len(batch) < documents_max:
            if not self.pending:
                if self.is_finished:
                    break
                if check_time is not None:
                    check_time()
                try:
                    self.pending = list(await anext(self.source))
                except StopAsyncIteration:
                    self.is_finished = True
                    break
                if not self.pending:
                    if self.waits:
                        break
                    continue
            room = len(self.pending) if documents_max is None else documents_max - len(batch)
            taken = 0
            for document in self.pending[:room]:
                raw = document if isinstance(document, bytes) else encode(document)
                if batch and size + len(raw) > BATCH_BYTES_MAX:
                    break
                batch.append(raw)
                size += len(raw)
                taken += 1
            is_full = taken < min(room, len(self.pending))
            del self.pending[:taken]
            if is_full or size >= BATCH_BYTES_MAX or (self.waits and batch and not self.pending):
                break
        if self.patience is not None and self.patience.is_over and not self.pending:
            self.is_finished = True
        if self.left is not None:
            self.left -= len(batch)
            if self.left <= 0 and not self.pending:
                self.is_finished = True
        return batch

    def added(self) -> Document | None:
        """Return the fields that the source adds to an answer."""
        return None if self.extra is None else self.extra(len(self.pending))

    async def end(self) -> None:
        closing = getattr(self.source, "aclose", None)
        if closing is not None:
            with suppress(RuntimeError):
                await closing()


class CursorRegistry:
    def __init__(
        self, random_bytes: Callable[[int], bytes], monotonic_seconds: Callable[[], float], *, place: int = 0
    ) -> None:
        """`place` is that of the process among those of the server."""
        self._place = place
        self._random_bytes = random_bytes
        self._monotonic_seconds = monotonic_seconds
        self._cursors: dict[int, Cursor] = {}

    def __len__(self) -> int:
        return len(self._cursors)

    def idle(self, account: str) -> list[Cursor]:
        """Return the open cursors of an account that no command is using."""
        return [cursor for cursor in self._cursors.values() if cursor.account == account and not cursor.is_in_use]

    async def open(
        self,
        call: Call,
        namespace: str,
        source: Slices,
        *,
        batch_size: int | None = None,
        single_batch: bool = False,
        waits: bool = False,
        never_times_out: bool = False,
        extra: Extra | None = None,
        limit: int | None = None,
        verify: Callable[[], None] | None = None,
        patience: Patience | None = None,
        close: Callable[[], None] | None = None,
        explain_failure: Callable[[Exception], Exception] | None = None,
    ) -> Answer:
        """Return the first batch of a source, and keep what is left of it under a cursor.

        A cursor stays open after a batch that was filled to its size, as MongoDB's do; only the end of the source, or
        `limit` documents, close it.
        """
        await self.expire()
        cursor = Cursor(
            0,
            namespace,
            source,
            call.account,
            call.connection.user,
            call.session,
            waits=waits,
            never_times_out=never_times_out,
            extra=extra,
            unit_number=call.txn_number if call.is_in_transaction else None,
            left=limit,
            verify=verify,
            patience=patience,
            close=close,
            explain_failure=explain_failure,
        )
        wanted = FIRST_BATCH_DOCUMENTS if batch_size is None else batch_size
        try:
            batch = await cursor.take(wanted, check_time=call.check_time) if wanted or single_batch else []
        except BaseException:
            await cursor.end()
            raise
        if call.deadline is not None:
            cursor.seconds_left = call.deadline - self._monotonic_seconds()
        is_over = cursor.is_finished and (not waits or (patience is not None and patience.is_over))
        is_open = not single_batch and (bool(cursor.pending) or not is_over)
        if is_open:
            cursor.number = self._new_number()
            cursor.used_at = self._monotonic_seconds()
            self._cursors[cursor.number] = cursor
        else:
            await cursor.end()
        return batch_answer("firstBatch", namespace, batch, cursor.number, cursor.added())

    async def go_on(self, call: Call, number: int, namespace: str, batch_size: int | None) -> Answer:
        await self.expire()
        cursor = self._owned(call, number)
        if cursor.namespace != namespace:
            raise MongoFailure(
                13, f"Requested getMore on namespace '{namespace}', but cursor belongs to {cursor.namespace}"
            )
        if cursor.session != call.session and cursor.session is not None:
            raise MongoFailure(50738, "Cannot run getMore on a cursor of another session")
        own_transaction = call.txn_number if call.is_in_transaction else None
        if cursor.unit_number != own_transaction:
            raise MongoFailure(
                50740 if own_transaction is None else 50741,
                f"Cannot run getMore on cursor {number} in another transaction than it was created in",
            )
        if cursor.is_in_use:
            raise MongoFailure(12051, "the cursor is in use by another operation")
        if "maxTimeMS" in call.body and call.field("maxTimeMS") is not None and cursor.patience is None:
            raise MongoFailure(2, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
        cursor.is_in_use = True
        began = self._monotonic_seconds()
        if cursor.seconds_left is not None:
            call.deadline = began + cursor.seconds_left
        try:
            _meet_fail_points(call, cursor)
            if cursor.verify is not None:
                cursor.verify()
            if cursor.patience is not None:
                cursor.patience.seconds = await_seconds(call)
            batch = await cursor.take(batch_size or None, check_time=call.check_time)
        except BaseException as problem:
            cursor.is_in_use = False
            await self._end(cursor)
            if cursor.explain_failure is not None and isinstance(problem, Exception):
                raise cursor.explain_failure(problem) from problem
            raise
        cursor.is_in_use = False
        cursor.used_at = self._monotonic_seconds()
        if cursor.seconds_left is not None:
            cursor.seconds_left -= cursor.used_at - began
        if cursor.is_killed:
            await cursor.end()
            raise MongoFailure(237, f"operation was interrupted because a client killed the cursor {number}")
        is_over = cursor.is_finished and not cursor.pending
        if is_over:
            await self._end(cursor)
        call.goes_on = not is_over
        return batch_answer("nextBatch", namespace, batch, 0 if is_over else number, cursor.added())

    def _owned(self, call: Call, number: int) -> Cursor:
        cursor = self._cursors.get(number)
        if cursor is None or cursor.account != call.account or cursor.user != call.connection.user:
            raise MongoFailure(43, f"cursor id {number} not found")
        return cursor

    async def kill(self, call: Call, numbers: Sequence[int]) -> tuple[list[int], list[int]]:
        """Close cursors; return those that were closed and those that are unknown."""
        killed: list[int] = []
        unknown: list[int] = []
        for number in numbers:
            cursor = self._cursors.get(number)
            if cursor is None or cursor.account != call.account or cursor.user != call.connection.user:
                unknown.append(number)
            else:
                await self._end(cursor)
                killed.append(number)
        return killed, unknown

    async def end_session(self, session: bytes) -> None:
        for cursor in [cursor for cursor in self._cursors.values() if cursor.session == session]:
            await self._end(cursor)

    async def end_transaction(self, session: bytes, number: int) -> None:
        """Close the cursors of a transaction that is over: their snapshot is gone."""
        for cursor in [cursor for cursor in self._cursors.values() if cursor.session == session]:
            if cursor.unit_number == number:
                await self._end(cursor)

    async def expire(self) -> None:
        oldest = self._monotonic_seconds() - IDLE_SECONDS_MAX
        for cursor in [found for found in self._cursors.values() if found.used_at < oldest]:
            if not cursor.is_in_use and not cursor.never_times_out:
                await self._end(cursor)

    async def _end(self, cursor: Cursor) -> None:
        self._cursors.pop(cursor.number, None)
        if not cursor.is_in_use:
            await cursor.end()
        else:
            cursor.is_finished = cursor.is_killed = True
            if cursor.close is not None:
                cursor.close()

    def _new_number(self) -> int:
        while True:
            number = int.from_bytes(self._random_bytes(8), "big") >> (64 - _ID_BITS)
            number = number >> PLACE_BITS << PLACE_BITS | self._place
            if number >> PLACE_BITS and number not in self._cursors:
                return number


def _meet_fail_points(call: Call, cursor: Cursor) -> None:
    points = call.context.fail_points
    if points is None:
        return
    points.on_get_more()
    if points.makes_late and cursor.seconds_left is not None:
        raise MongoFailure(50, "operation exceeded time limit")
    if points.makes_punctual:
        call.deadline = None


def batch_answer(
    name: str, namespace: str, batch: Sequence[bytes], number: int, added: Document | None = None
) -> bytes:
    """Return an answer with a batch, assembled from stored bodies without decoding them."""
    parts = [
        element(0x04, name, join_array(batch)),
        element(0x12, "id", number.to_bytes(8, "little")),
        element(0x02, "ns", text_value(namespace)),
    ]
    if added is not None:
        parts.append(encode(added)[4:-1])
    return document_of(element(0x03, "cursor", document_of(*parts)))


# --- commands -------------------------------------------------------------------------------------------------------


async def get_more(call: Call) -> Answer:
    number, name = call.target, call.body["collection"]
    if number is None:
        raise MongoFailure(40414, "BSON field 'getMore.getMore' is missing but a required field")
    if type(number) is not Int64:
        raise MongoFailure(14, "BSON field 'getMore.getMore' is the wrong type, expected type 'long'")
    if not name:
        raise MongoFailure(73, "Collection names cannot be empty")
    size = call.get("batchSize")
    batch_size = None if size is None else as_int(size)
    if batch_size is not None and batch_size < 0:
        raise MongoFailure(2, f"BSON field 'batchSize' value must be >= 0, actual value '{batch_size}'")
    return await call.context.cursors.go_on(call, int(number), f"{call.database}.{name}", batch_size)


async def kill_cursors(call: Call) -> Document:
    cursors = call.body["cursors"]
    # Null is passed over, as MongoDB does.
    cursors = [number for number in cursors if number is not None]
    for number in cursors:
        if type(number) is not Int64:
            raise MongoFailure(14, "BSON field 'killCursors.cursors' is the wrong type, expected type 'long'")
    killed, unknown = await call.context.cursors.kill(call, cursors)
    if unknown and not call.is_forwarded:
        killed += await call.context.forwarder.kill_cursors(call, unknown)
        unknown = [number for number in unknown if number not in killed]
    return {
        "cursorsKilled": [Int64(number) for number in killed],
        "cursorsNotFound": [Int64(number) for number in unknown],
        "cursorsAlive": [],
        "cursorsUnknown": [],
    }


def await_seconds(call: Call) -> float:
    """Return how long a getMore of a waiting cursor waits for documents."""
    return _AWAIT_SECONDS if call.max_time_ms is None else call.max_time_ms / 1000


COMMANDS = (
    Command(
        "getMore",
        get_more,
        "The next batch of a cursor.",
        fields={
            "collection": FieldRule(("string",), is_required=True, null_code=40414),
            "batchSize": FieldRule(NUMBER),
            "term": FieldRule(("long",)),
            "lastKnownCommittedOpTime": FieldRule(),
        },
        target=Target.OWN,
        access=Access.READ,
        in_transaction=True,
        api_version_1=True,
    ),
    Command(
        "killCursors",
        kill_cursors,
        "Close cursors.",
        fields={"cursors": FieldRule(("array",), is_required=True, null_code=40414)},
        target=Target.COLLECTION,
        access=Access.READ,
        in_transaction=True,
        api_version_1=True,
    ),
)
