"""One command under way: its arguments, its sender, and everything it needs to be carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asterism.keyspaces.routing.keyspace import Spent
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import encode
from asterism.values.bson.raw_documents import elements
from asterism.values.bson.types import DatetimeMS, Decimal128, Document, Timestamp

if TYPE_CHECKING:
    from asterism.apis.mongo.commands import Command
    from asterism.apis.mongo.connection import Connection
    from asterism.apis.mongo.context import DoorContext
    from asterism.apis.mongo.transactions import OpenTransaction
    from asterism.apis.services import DoorServices
    from asterism.models.collections.collection import Collection
    from asterism.models.collections.records import CollectionRecord
    from asterism.models.collections.store import CollectionStore
    from asterism.models.collections.unit import Unit


@dataclass(slots=True)
class Call:
    """A command whose general fields are read and whose own fields have been checked against its row."""

    context: DoorContext
    connection: Connection
    command: Command
    # As the client wrote it, which may be one of the aliases.
    name: str
    database: str
    body: Document
    # The body as it arrived.
    raw: bytes
    # Sequences of documents that came beside the body, by name; each document as its bytes.
    sections: dict[str, list[bytes]]
    request_id: str = ""
    # The id of the logical session, with the digest of its user; None without `lsid`.
    session: bytes | None = None
    txn_number: int | None = None
    # `autocommit: false`: the command belongs to a transaction.
    is_in_transaction: bool = False
    starts_transaction: bool = False
    # commitTransaction and abortTransaction.
    ends_transaction: bool = False
    transaction: OpenTransaction | None = None
    read_concern: Document | None = None
    write_concern: Document | None = None
    max_time_ms: int | None = None
    # In monotonic seconds.
    deadline: float | None = None
    comment: Any = None
    spent: Spent = field(default_factory=Spent)
    # True if a change was written, or may have been, for the labels of an error.
    has_written: bool = False
    # The command can be carried out again at once, for a client that takes several replies to one request.
    goes_on: bool = False
    # True once `killOp` has asked the command to end.
    is_killed: bool = False
    # True if another process has got the command, and has checked its sender.
    is_forwarded: bool = False
    # A fail point wants the connection closed instead of an answer.
    closes_connection: bool = False

    # --- the sender and the server ----------------------------------------------------------------------------------

    @property
    def account(self) -> str:
        return self.connection.account

    @property
    def services(self) -> DoorServices:
        return self.context.services

    @property
    def store(self) -> CollectionStore:
        return self.context.services.collections

    @property
    def unit(self) -> Unit | None:
        """The staged changes and the snapshot of the transaction; None outside of one."""
        return None if self.transaction is None else self.transaction.unit

    @property
    def operation(self) -> str:
        return self.command.name

    # --- arguments --------------------------------------------------------------------------------------------------

    @property
    def target(self) -> Any:
        """The value behind the command's name."""
        return self.body[self.name]

    @property
    def namespace(self) -> str:
        return f"{self.database}.{self.target}"

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field; the default if it is absent or null."""
        value = self.body.get(name)
        return default if value is None else value

    def field(self, name: str, default: Any = None) -> Any:
        """Return a field as it is; the default if it is absent."""
        return self.body.get(name, default)

    @property
    def transaction_number(self) -> int | None:
        return self.txn_number

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a field that may be a boolean or a number."""
        value = self.body.get(name)
        if value is None:
            return default
        return bool(value.to_decimal()) if isinstance(value, Decimal128) else bool(value)

    def documents(self, name: str) -> list[bytes]:
        """Return the documents of a field as bytes, whether they came beside the body or in an array of it."""
        found = self.sections.get(name)
        if found is not None:
            return found
        array = self.body.get(name)
        if not isinstance(array, list):
            return []
        return _raw_documents(self.raw, name, array)

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> DatetimeMS:
        return DatetimeMS(int(self.services.clock.wall_seconds() * 1000))

    @property
    def cluster_time(self) -> Timestamp:
        return timestamp_of(self.store.services.hybrid_clock.now)

    def check_time(self) -> None:
        """Refuse to go on when the time that the client allows is over, or when the command is to end."""
        if self.is_killed:
            raise MongoFailure(11601, "operation was interrupted")
        if self.deadline is not None and self.services.clock.monotonic_seconds() >= self.deadline:
            raise MongoFailure(50, "operation exceeded time limit")

    # --- collections ------------------------------------------------------------------------------------------------

    def record(self, name: str | None = None) -> CollectionRecord | None:
        return self.store.record(self.account, self.database, self.target if name is None else name, self.unit)

    def collection(self, name: str | None = None) -> Collection | None:
        return self.store.find(self.account, self.database, self.target if name is None else name, self.unit)


def timestamp_of(time: int) -> Timestamp:
    return Timestamp(time >> 32, time & 0xFFFFFFFF)


def _raw_documents(raw: bytes, name: str, array: Sequence[Any]) -> list[bytes]:
    wanted = name.encode()
    for kind, found, start, _ in elements(raw):
        if found == wanted and kind == 0x04:
            return [
                raw[at:end] if of == 0x03 else encode({"": array[place]})
                for place, (of, _, at, end) in enumerate(elements(raw, start))
            ]
    return []
