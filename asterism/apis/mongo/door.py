"""The door for MongoDB's protocol: connections, and the way of a command from its message to its answer."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from asterism.apis.mongo.admission import hold_until_admitted
from asterism.apis.mongo.arguments import check_arguments, check_database_name
from asterism.apis.mongo.call import Call, timestamp_of
from asterism.apis.mongo.commands import Access, Command
from asterism.apis.mongo.connection import Connection
from asterism.apis.mongo.context import DoorContext
from asterism.apis.mongo.current_catalog import carry_out
from asterism.apis.mongo.error_labels import STATE_CHANGES, labels_of
from asterism.apis.mongo.errors import as_failure, failure_document
from asterism.apis.mongo.fail_points import ConnectionClosed, InjectedFailure, Interference
from asterism.apis.mongo.forwarding import ForwardedAnswer
from asterism.apis.mongo.hello import hello, note_client
from asterism.apis.mongo.session_fields import check_in_transaction, enter_transaction, read_session_fields
from asterism.apis.mongo.table import COMMANDS
from asterism.apis.mongo.users.authorization import check_rights
from asterism.apis.mongo.wire import MORE_TO_COME, OP_MSG, OP_QUERY, Message, MongoCodec, encode_reply
from asterism.apis.pipeline import UNROUTED, Pipeline, RequestMeter
from asterism.apis.transports.codec import MalformedBytes
from asterism.apis.transports.http import ClientGone
from asterism.apis.transports.messages import LastReply, Reply, serve_messages
from asterism.apis.transports.tcp import ByteStream
from asterism.errors import AsterismError, RequestRateTooLarge
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import InvalidBson, encode
from asterism.values.bson.raw_documents import document_of
from asterism.values.bson.types import Document, Int64

_OK = encode({"ok": 1.0})[4:-1]
_NO_SIGNATURE = {"hash": bytes(20), "keyId": Int64(0)}
# Commands of version 1 of the stable API that `apiStrict` lets pass are marked in their rows.
_API_VERSION = "1"
_UNKNOWN = Command("unknown", hello, "A command that is not in the table.", access=Access.NOBODY)
_LEGACY_HELLO = frozenset({"ismaster", "isMaster", "hello"})


@dataclass(slots=True)
class _Answer:
    status: int | str
    body: bytes

    @property
    def is_failure(self) -> bool:
        return self.status != "ok"


@dataclass(slots=True)
class _Request:
    """A message on its way, before and after its command is known."""

    message: Message
    connection: Connection
    request_id: str
    call: Call | None = None
    # Another process has got it.
    is_forwarded: bool = False

    @property
    def operation(self) -> str:
        return UNROUTED if self.call is None else self.call.command.name

    @property
    def goes_on(self) -> bool:
        return self.call is not None and self.call.goes_on


class MongoDoor:
    """Serves connections. One per process."""

    def __init__(self, context: DoorContext) -> None:
        self.context = context
        self._numbers = itertools.count(1)
        self._reply_ids = itertools.count(1)
        self._gossip_time = 0
        self._gossip_bytes = b""
        services = context.services
        self._pipeline: Pipeline[_Request, _Answer] = Pipeline(
            "mongo", self, self._handle, services.meter, transport_errors=(ClientGone, LastReply)
        )
        # The process that got a command counts it.
        uncounted = RequestMeter(services.clock.monotonic_seconds)
        self._forwarded: Pipeline[_Request, _Answer] = Pipeline(
            "mongo", self, self._handle, uncounted, transport_errors=(ClientGone, LastReply)
        )
        context.forwarder.serve(self._answer_forwarded)

    async def serve(self, stream: ByteStream) -> None:
        operations = self.context.operations
        connection = Connection(
            next(self._numbers), stream.peer_address, stream.local_address, stream.is_tls, stream.server_name, stream
        )
        self.context.authenticator.greet(connection)
        operations.connections += 1
        operations.connections_created += 1
        operations.open_connections[connection.number] = connection
        try:
            await serve_messages(stream, MongoCodec(), _Handler(self, connection))
        finally:
            operations.connections -= 1
            del operations.open_connections[connection.number]

    async def answer(self, message: Message, connection: Connection) -> Reply:
        request = self._request(message, connection)
        answer = await self._pipeline.run(request)
        if request.call is not None and request.call.closes_connection:
            raise LastReply
        if message.wants_no_reply:
            return b""
        reply_id = self._next_reply_id()
        if message.allows_exhaust and request.goes_on and not connection.is_ending:
            return self._replies_of(message, connection, answer, reply_id)
        reply = encode_reply(message, answer.body, reply_id=reply_id, is_failure=answer.is_failure)
        self.context.operations.bytes_out += len(reply)
        if connection.is_ending:
            # A busy client would never stop by itself.
            raise LastReply(reply)
        return reply

    async def _replies_of(
        self, message: Message, connection: Connection, answer: _Answer, reply_id: int
    ) -> AsyncIterator[bytes]:
        """Yield a reply and those that follow it without a request, for as long as the command has more to say."""
        yield encode_reply(message, answer.body, reply_id=reply_id, flags=MORE_TO_COME)
        is_last = False
        while not is_last:
            if "topologyVersion" in message.body:
                # The client waits for the change after the one that it was just told.
                message.body["topologyVersion"] = self.context.topology.version
            request = self._request(message, connection)
            answer = await self._pipeline.run(request)
            if request.call is not None and request.call.closes_connection:
                raise LastReply
            is_last = not request.goes_on or connection.is_ending
            response_to, reply_id = reply_id, self._next_reply_id()
            yield encode_reply(
                message,
                answer.body,
                reply_id=reply_id,
                response_to=response_to,
                flags=0 if is_last else MORE_TO_COME,
            )
        if connection.is_ending:
            raise LastReply

    def _request(self, message: Message, connection: Connection) -> _Request:
        return _Request(message, connection, self.context.services.new_request_id())

    def _next_reply_id(self) -> int:
        return next(self._reply_ids) & 0x7FFFFFFF

    async def _answer_forwarded(self, message: Message, connection: Connection) -> ForwardedAnswer:
        request = _Request(message, connection, self.context.services.new_request_id(), is_forwarded=True)
        answer = await self._forwarded.run(request)
        return ForwardedAnswer(answer.status, answer.body, 0.0 if request.call is None else request.call.spent.charge)

    # --- the words of the pipeline ----------------------------------------------------------------------------------

    def refuse(self, error: AsterismError, request: _Request, /) -> _Answer:
        failure = as_failure(error)
        assert failure is not None, "every error of the database has a row"
        return self._failed(failure, request)

    def refuse_own(self, problem: Exception, request: _Request, /) -> _Answer | None:
        if isinstance(problem, ConnectionClosed):
            assert request.call is not None, "only a command meets a fail point"
            request.call.closes_connection = True
            return _Answer("closed", b"")
        if isinstance(problem, InvalidBson):
            return self._failed(MongoFailure(22, f"The document is not valid BSON: {problem}"), request)
        if isinstance(problem, RecursionError):
            # A level of a document takes several calls of its compiler, and Python allows a thousand.
            return self._failed(MongoFailure(2, "The command is nested too deeply; use fewer levels."), request)
        failure = as_failure(problem)
        return None if failure is None else self._failed(failure, request)

    def fail(self, request: _Request, /) -> _Answer:
        return self._failed(MongoFailure(1, "The server failed; its log has the reason."), request)

    def describe(self, request: _Request, /) -> str:
        return (
            "a message" if request.call is None else f"{request.call.command.name} on {request.call.database!r}"[:200]
        )

    def charge_of(self, request: _Request, _: _Answer, /) -> str:
        return "" if request.call is None else f"{request.call.spent.charge:.2f}"

    def _failed(self, failure: MongoFailure, request: _Request) -> _Answer:
        call = request.call
        document = failure_document(failure, () if call is None else _labels(call, failure))
        if failure.code in STATE_CHANGES:
            document |= self._topology()
        if call is not None:
            call.goes_on = False
            document |= self._gossip()
        if request.message.is_old:
            document["$err"] = failure.message
        return _Answer(failure.code, encode(document))

    # --- commands ---------------------------------------------------------------------------------------------------

    async def _handle(self, request: _Request) -> _Answer:
        message = request.message
        if message.problem:
            raise MongoFailure(22 if message.opcode in (OP_MSG, OP_QUERY) else 352, message.problem)
        if message.duplicate:
            raise MongoFailure(40413, f"BSON field '{message.duplicate}' is a duplicate field")
        body = message.body
        if not body:
            raise MongoFailure(59, "no such command: ''")
        name = next(iter(body))
        if message.opcode == OP_QUERY:
            return await self._handle_query(request, name)
        database = body.get("$db")
        # Code is a text to Python.
        if type(database) is not str:
            raise MongoFailure(40414, "OP_MSG requests require a $db argument")
        command = COMMANDS.get(name)
        call = Call(
            self.context,
            request.connection,
            command or _UNKNOWN,
            name,
            database,
            body,
            message.raw_body,
            message.sections,
            request.request_id,
            is_forwarded=request.is_forwarded,
        )
        if command is None:
            raise MongoFailure(59, f"no such command: '{name}'")
        request.call = call
        check_database_name(database)
        check_in_transaction(command, body)
        if not request.is_forwarded:
            await self._check_access(call)
        self._check_api(call)
        for section in message.sections:
            if section in body:
                raise MongoFailure(40415, f"The field '{section}' is in the command and beside it.")
        check_arguments(command, name, body, message.sections)
        if not request.is_forwarded:
            place = self.context.forwarder.place_of(call)
            if place is not None:
                return await self._forward(place, message, call)
        read_session_fields(call)
        answer = await self._carry_out(call)
        if not request.is_forwarded:
            await self.context.forwarder.tell_all(call, message)
        return answer

    async def _forward(self, place: int, message: Message, call: Call) -> _Answer:
        started = self.context.monotonic_seconds()
        answer = await self.context.forwarder.forward(place, message, call.connection)
        connection = call.connection
        call.spent.charge += answer.charge
        connection.last_command, connection.last_charge = call.command.name, answer.charge
        connection.last_milliseconds = (self.context.monotonic_seconds() - started) * 1000
        return _Answer(answer.status, answer.body)

    async def _carry_out(self, call: Call) -> _Answer:
        context, command, connection = self.context, call.command, call.connection
        started = context.monotonic_seconds()
        number = context.operations.begin(call)
        try:
            if not connection.application and "client" in call.body:
                # Before fail points, which may be for one application.
                note_client(connection, call.body["client"])
            interference = await self._interfere(call)
            if context.write_lock.count:
                await context.write_lock.wait(call)
            if context.settings.holds_throttled:
                fields = await hold_until_admitted(call, lambda: self._enter_and_run(call))
            else:
                fields = await self._enter_and_run(call)
        finally:
            context.operations.end(number)
            seconds = context.monotonic_seconds() - started
            context.usage.note_command(call, seconds)
            if command.name != "getLastRequestStatistics":
                connection.last_command = command.name
                connection.last_charge = call.spent.charge
                connection.last_milliseconds = seconds * 1000
        more: Document = {} if interference is None else _with_concern_error(call, interference)
        if more and more["writeConcernError"].get("code") in STATE_CHANGES:
            more |= self._topology()
        if isinstance(fields, bytes):
            extra = encode(more)[4:-1] if more else b""
            return _Answer("ok", document_of(fields[4:-1], _OK, self._encoded_gossip(), extra))
        answer = {**fields, "ok": 1.0, **self._gossip()} if "ok" not in fields else {**fields, **self._gossip()}
        return _Answer("ok", encode({**answer, **more} if more else answer))

    async def _interfere(self, call: Call) -> Interference | None:
        """Let fail points have their way with a command."""
        points = self.context.fail_points
        if points is None:
            return None
        interference = await points.meet(call)
        if points.makes_late and call.max_time_ms is not None:
            raise MongoFailure(50, "operation exceeded time limit")
        if points.makes_punctual:
            call.deadline = None
        return interference

    async def _enter_and_run(self, call: Call) -> Document | bytes:
        await enter_transaction(call)
        return await (self._run_in_transaction(call) if call.transaction is not None else carry_out(call))

    async def _run_in_transaction(self, call: Call) -> Document | bytes:
        transaction, transactions = call.transaction, self.context.transactions
        assert transaction is not None, "the command belongs to a transaction"
        async with transaction.lock:
            transactions.check_open(transaction)
            try:
                return await carry_out(call)
            except RequestRateTooLarge:
                # Nothing was staged, so the client may repeat the statement, also the first.
                if call.starts_transaction:
                    await transactions.forget(transaction)
                raise
            except BaseException:
                await transactions.fail(transaction)
                raise

    async def _handle_query(self, request: _Request, name: str) -> _Answer:
        message = request.message
        if name not in _LEGACY_HELLO or not message.namespace.endswith(".$cmd"):
            raise MongoFailure(352, f"Unsupported OP_QUERY command: {name}. Use OP_MSG.")
        call = Call(
            self.context, request.connection, COMMANDS[name], name, "admin", message.body, message.raw_body, {},
            request.request_id,
        )  # fmt: skip
        request.call = call
        return await self._carry_out(call)

    async def _check_access(self, call: Call) -> None:
        command, connection = call.command, call.connection
        if not connection.is_owner and command.access is not Access.NOBODY:
            await self._check_rights(call)
        if command.admin_only and call.database != "admin":
            raise MongoFailure(13, f"{command.name} may only be run against the admin database.")

    async def _check_rights(self, call: Call) -> None:
        connection = call.connection
        if connection.rights is not None:
            directory = await self.context.authenticator.directory.current(connection.account)
            connection.rights = directory.rights(connection.user)
            if connection.rights is None:
                # The user was dropped.
                connection.account = connection.user = connection.user_name = ""
        if not connection.account:
            raise MongoFailure(13, f"Command {call.command.name} requires authentication")
        check_rights(call)

    def _check_api(self, call: Call) -> None:
        body = call.body
        version = body.get("apiVersion")
        if version is None:
            if "apiStrict" in body or "apiDeprecationErrors" in body:
                raise MongoFailure(4886600, "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion")
            return
        if version != _API_VERSION:
            raise MongoFailure(322, "API version must be '1'")
        if body.get("apiStrict") and not call.command.api_version_1:
            raise MongoFailure(
                323, f"Provided apiStrict:true, but the command {call.command.name} is not in API Version 1"
            )

    def _encoded_gossip(self) -> bytes:
        """Return the fields of `_gossip` as bytes, which stay the same until the next change."""
        time = self.context.store.services.hybrid_clock.now
        if time != self._gossip_time:
            self._gossip_time = time
            self._gossip_bytes = encode(self._gossip())[4:-1]
        return self._gossip_bytes

    def _topology(self) -> Document:
        """Tell drivers with an error that the set is the one they know, so that they need not wait for a new hello."""
        return {"topologyVersion": self.context.topology.version}

    def _gossip(self) -> Document:
        time = timestamp_of(self.context.store.services.hybrid_clock.now)
        return {"$clusterTime": {"clusterTime": time, "signature": _NO_SIGNATURE}, "operationTime": time}


def _labels(call: Call, failure: MongoFailure) -> Sequence[str]:
    if isinstance(failure, InjectedFailure) and failure.only_labels is not None:
        return failure.only_labels
    found = labels_of(
        failure.code,
        is_retryable_write=call.txn_number is not None and not call.is_in_transaction,
        is_in_transaction=call.is_in_transaction,
        ends_transaction=call.ends_transaction,
        has_written=call.has_written,
    )
    return list(dict.fromkeys((*failure.labels, *found)))


def _with_concern_error(call: Call, interference: Interference) -> Document:
    """Return the fields of an answer that tell of a write concern which a fail point lets fail."""
    error = interference.write_concern_error or {}
    labels: Sequence[str] | None = interference.labels
    if labels is None:
        labels = labels_of(
            None,
            concern_code=error.get("code"),
            is_retryable_write=call.txn_number is not None and not call.is_in_transaction,
            ends_transaction=call.ends_transaction,
        )
    return {"writeConcernError": error, **({"errorLabels": list(labels)} if labels else {})}


class _Handler:
    """One connection's messages."""

    __slots__ = ("_connection", "_door")

    def __init__(self, door: MongoDoor, connection: Connection) -> None:
        self._door = door
        self._connection = connection

    async def answer(self, message: Message) -> Reply:
        return await self._door.answer(message, self._connection)

    def refuse(self, _: MalformedBytes) -> bytes:
        # MongoDB closes the connection without a word, too.
        return b""
