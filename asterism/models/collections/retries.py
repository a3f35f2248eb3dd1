"""Outcomes of retryable writes: kept with the documents, in the batch of the write itself.

A client repeats a write exactly when it has not learned whether the server carried it out, so an outcome that is not as
durable as the write would be worth nothing. A session's next number takes the place of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.collections.layout import retry_key, session_place, session_places
from asterism.models.collections.results import RetryToken, TransactionNumberTooOld
from asterism.partitioning.key_range import FULL
from asterism.storage.contract import Batch, Span
from asterism.values.bson.codec import decode_record, encode
from asterism.values.bson.types import Document, Int64

# A command has at most as many statements, each of which writes in one place.
_PLACES_MAX = 100_000
# The outcome of a document that was inserted. Inserts are kept as ranges of statements, as there may be many.
INSERTED: Document = {"n": 1}
COMMITTED: Document = {"committed": True}


class SessionOutcomes:
    """The record of one session in one logical partition, as a write has found it."""

    __slots__ = ("_inserted", "_key", "_point", "_statements", "_token")

    def __init__(self, token: RetryToken, point: bytes, stored: bytes | None) -> None:
        """TransactionNumberTooOld if the session has gone on to a higher number."""
        self._token = token
        self._point = point
        self._key = retry_key(point, token.session)
        record = {} if stored is None else decode_record(stored)
        number = record.get("n", -1)
        if number > token.number:
            raise TransactionNumberTooOld
        is_known = number == token.number
        self._statements: Document = record["s"] if is_known else {}
        # Starts and ends of half-open ranges, in turn.
        self._inserted: list[int] = record.get("r", []) if is_known else []

    @staticmethod
    def key_of(token: RetryToken, point: bytes) -> bytes:
        return retry_key(point, token.session)

    def find(self, statement: int) -> Document | None:
        """Return the outcome of a statement that was carried out before."""
        starts, ends = self._inserted[::2], self._inserted[1::2]
        if any(start <= statement < end for start, end in zip(starts, ends, strict=True)):
            return INSERTED
        return self._statements.get(str(statement))

    def plan(self, batch: Batch, outcomes: dict[int, Document], *, now: int) -> None:
        """Add the outcomes of statements to the batch that carries them out."""
        statements = {**self._statements, **{str(number): outcome for number, outcome in outcomes.items()}}
        self._put(batch, statements, self._inserted, now)

    def plan_inserts(self, batch: Batch, statements: Iterable[int], *, now: int) -> None:
        """Add the outcomes of inserted documents, whose statements are in order."""
        self._put(batch, self._statements, [*self._inserted, *_ranges(statements)], now)

    def _put(self, batch: Batch, statements: Document, inserted: list[int], now: int) -> None:
        self._token.before_write()
        record: Document = {"n": Int64(self._token.number), "t": Int64(now), "s": statements}
        if inserted:
            record["r"] = inserted
        batch.puts.append((self._key, encode(record)))
        if self._token.is_anywhere:
            token = self._token
            batch.puts.append(session_place(self._point, token.session, token.number, wall_milliseconds=now))


def _ranges(numbers: Iterable[int]) -> list[int]:
    ordered = list(numbers)
    breaks = [end for last, first in pairwise(ordered) if first != last + 1 for end in (last + 1, first)]
    return [ordered[0], *breaks, ordered[-1] + 1] if ordered else []


def written_at(stored: bytes) -> int:
    """Return the wall-clock milliseconds at which a record was written last."""
    return int(decode_record(stored)["t"])


def is_committed(stored: bytes | None, token: RetryToken) -> bool:
    """Return whether a record is that of a transaction with the token's number that was committed."""
    record = {} if stored is None else decode_record(stored)
    return record.get("n") == token.number and record["s"].get(str(token.statement)) == COMMITTED


async def read_outcomes(
    router: PartitionRouter, keyspace: Keyspace, token: RetryToken, point: bytes
) -> SessionOutcomes:
    key = SessionOutcomes.key_of(token, point)
    _, _, (stored,) = await router.read(keyspace, point, (key,))
    return SessionOutcomes(token, point, stored)


async def find_anywhere(router: PartitionRouter, keyspace: Keyspace, token: RetryToken) -> Document | None:
    """Return the outcome of a statement that was carried out before, wherever in the keyspace its document lies."""
    prefix = session_places(token.session, token.number)
    span = Span(prefix, after_prefix(prefix))
    start = FULL.start
    while start < FULL.end:
        record = keyspace.record
        partition = record.map.find(start)
        page = await router.scan(keyspace, record, partition, span, limit=_PLACES_MAX, bytes_max=None)
        if page is None:
            # Another map is in force.
            continue
        for key, _ in page.entries:
            known = (await read_outcomes(router, keyspace, token, key[len(prefix) :])).find(token.statement)
            if known is not None:
                return known
        start = partition.range.end
    return None
