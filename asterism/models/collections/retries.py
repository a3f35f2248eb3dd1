"""Outcomes of retryable writes: kept with the documents, in the batch of the write itself.

A client repeats a write exactly when it has not learned whether the server carried it out, so an outcome that is not as
durable as the write would be worth nothing. A session's next number takes the place of the one before.
"""

from __future__ import annotations

from asterism.models.collections.layout import retry_key
from asterism.models.collections.results import RetryToken, TransactionNumberTooOld
from asterism.storage.contract import Batch
from asterism.values.bson.codec import decode_record, encode
from asterism.values.bson.types import Document, Int64


class SessionOutcomes:
    """The record of one session in one logical partition, as a write has found it."""

    __slots__ = ("_key", "_statements", "_token")

    def __init__(self, token: RetryToken, point: bytes, stored: bytes | None) -> None:
        """TransactionNumberTooOld if the session has gone on to a higher number."""
        self._token = token
        self._key = retry_key(point, token.session)
        record = {} if stored is None else decode_record(stored)
        number = record.get("n", -1)
        if number > token.number:
            raise TransactionNumberTooOld
        self._statements: Document = record["s"] if number == token.number else {}

    @staticmethod
    def key_of(token: RetryToken, point: bytes) -> bytes:
        return retry_key(point, token.session)

    def find(self, statement: int) -> Document | None:
        """Return the outcome of a statement that was carried out before."""
        return self._statements.get(str(statement))

    def plan(self, batch: Batch, outcomes: dict[int, Document], *, now: int) -> None:
        """Add the outcomes of statements to the batch that carries them out."""
        statements = {**self._statements, **{str(number): outcome for number, outcome in outcomes.items()}}
        record = {"n": Int64(self._token.number), "t": Int64(now), "s": statements}
        batch.puts.append((self._key, encode(record)))


def written_at(stored: bytes) -> int:
    """Return the wall-clock milliseconds at which a record was written last."""
    return int(decode_record(stored)["t"])
