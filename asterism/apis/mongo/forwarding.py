"""Commands that belong to another process of the server: those of its cursors and its transactions.

Drivers send the commands of one cursor or one transaction over any connection of their pool, and the system hands a
connection to any process. A cursor's id names the process that keeps it. A transaction belongs to the process that the
id of its session points to, wherever its first command arrives. The process that got the command has checked the
sender's rights; it passes the answer of the owner on as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any
from zlib import crc32

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.connection import Connection
from asterism.apis.mongo.cursors import PLACE_BITS
from asterism.apis.mongo.wire import OP_MSG, Message
from asterism.apis.process_group import ProcessGroup, ProcessUnreachable
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Document, Int64

TOPIC = "mongo"
_PLACE_MASK = (1 << PLACE_BITS) - 1
_TRANSIENT = ("TransientTransactionError",)
# Commands about what any process may keep: all of them carry these out.
_FOR_ALL = frozenset(
    {"endSessions", "killSessions", "killAllSessions", "killAllSessionsByPattern", "setParameter",
     "setDefaultRWConcern", "configureFailPoint"}
)  # fmt: skip


@dataclass(slots=True)
class ForwardedAnswer:
    status: int | str
    body: bytes
    charge: float = 0.0


# Carries a command out in the process that it was forwarded to.
CarryOut = Callable[[Message, Connection], Awaitable[ForwardedAnswer]]


def place_of_cursor(number: int) -> int:
    return number & _PLACE_MASK


class Forwarder:
    """Finds the process of a command, and asks it."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group

    @property
    def is_alone(self) -> bool:
        return self._group.count == 1

    def serve(self, carry_out: CarryOut) -> None:
        """Carry out what other processes forward to this one."""

        async def answer(question: bytes) -> bytes:
            asked = decode(question)
            body = bytes(asked["body"])
            message = Message(
                0,
                OP_MSG,
                int(asked["flags"]),
                body,
                decode(body),
                {name: [bytes(document) for document in documents] for name, documents in asked["sections"].items()},
            )
            done = await carry_out(message, Connection(**asked["connection"]))
            return encode({"status": done.status, "body": done.body, "charge": done.charge})

        self._group.answer_with(TOPIC, answer)

    def place_of(self, call: Call) -> int | None:
        """Return the other process that a command belongs to; None for one of this process."""
        if self._group.count == 1:
            return None
        place = self._owner(call)
        return None if place is None or place == self._group.number or place >= self._group.count else place

    def _owner(self, call: Call) -> int | None:
        body = call.body
        if body.get("autocommit") is False:
            lsid = body.get("lsid")
            session = lsid.get("id") if isinstance(lsid, dict) else None
            return crc32(session) % self._group.count if isinstance(session, bytes) else None
        if call.command.name == "getMore":
            return place_of_cursor(call.target) if type(call.target) is Int64 and call.target > 0 else None
        return None

    async def forward(self, place: int, message: Message, connection: Connection) -> ForwardedAnswer:
        """Return the answer of another process; MongoFailure if it has ended, and what it kept with it."""
        question = encode(
            {
                "flags": message.flags,
                "body": message.raw_body,
                "sections": message.sections,
                "connection": _identity(connection),
            }
        )
        try:
            answer = decode(await self._group.ask(place, TOPIC, question))
        except ProcessUnreachable:
            raise _owner_gone(message.body) from None
        return ForwardedAnswer(answer["status"], bytes(answer["body"]), answer["charge"])

    async def tell_all(self, call: Call, message: Message) -> None:
        """Let the other processes carry out a command about what any of them may keep."""
        if self._group.count == 1 or call.name not in _FOR_ALL:
            return
        for place in range(self._group.count):
            if place != self._group.number:
                with suppress(MongoFailure):
                    await self.forward(place, message, call.connection)

    async def kill_cursors(self, call: Call, numbers: Sequence[int]) -> list[int]:
        """Close cursors of other processes; return those that were closed."""
        killed: list[int] = []
        by_place: dict[int, list[int]] = {}
        for number in numbers:
            place = place_of_cursor(number)
            if number > 0 and place != self._group.number and place < self._group.count:
                by_place.setdefault(place, []).append(number)
        for place, theirs in by_place.items():
            command = encode(
                {"killCursors": call.target, "cursors": [Int64(number) for number in theirs], "$db": call.database}
            )
            message = Message(0, OP_MSG, 0, command, decode(command))
            with suppress(MongoFailure):
                answer = decode((await self.forward(place, message, call.connection)).body)
                killed += [int(number) for number in answer.get("cursorsKilled", ())]
        return killed


def _identity(connection: Connection) -> dict[str, Any]:
    """Return the fields of a connection that another process can have, too: not those of a login under way."""
    values = ((field.name, getattr(connection, field.name)) for field in fields(connection))
    return {name: value for name, value in values if value is None or isinstance(value, (str, int, float, bool))}


def _owner_gone(body: Document) -> MongoFailure:
    if body.get("autocommit") is False:
        return MongoFailure(
            251, "The process that kept the transaction has ended; please repeat all of it.", labels=_TRANSIENT
        )
    return MongoFailure(43, f"cursor id {next(iter(body.values()))} not found: the process that kept it has ended")
