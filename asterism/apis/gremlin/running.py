"""Requests through the pipeline: evaluated, their results sent in batches, every error in the service's words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from asterism.apis.gremlin.call import Answer, Call, Send
from asterism.apis.gremlin.encoders import Encoder, encoder_for
from asterism.apis.gremlin.errors import NO_CONTENT, SUCCESS, UNFORESEEN, Refusal, as_refusal, refusal_of
from asterism.apis.gremlin.evaluating import EvaluationRequest, read_evaluation
from asterism.apis.gremlin.login import Login
from asterism.apis.gremlin.malformed import MalformedMessage, ResultRefused
from asterism.apis.gremlin.requests import Request
from asterism.apis.gremlin.responses import BATCH_SIZE_MAX, MESSAGE_BYTES_MAX, ResponseWriter
from asterism.apis.gremlin.settings import GremlinSettings
from asterism.apis.pipeline import Pipeline, RequestMeter
from asterism.apis.transports.chunks import close_chunks
from asterism.apis.transports.http import RequestUnread
from asterism.errors import AsterismError
from asterism.languages.gremlin.evaluation import GraphEngine, SourceOptions
from asterism.languages.gremlin.failure import TimeExceeded

DOOR: Final = "gremlin"
# The operations of each processor; those of a session have no effect beyond their request either.
OPERATIONS: Final = frozenset({("", "eval"), ("traversal", "bytecode"), ("session", "eval"), ("session", "bytecode")})
CLOSE: Final = ("session", "close")
AUTHENTICATION: Final = "authentication"
# Those that a test suite can make fail.
_NAMES: Final = ("eval", "bytecode")
_SHOWN_CHARACTERS_MAX: Final = 60
_TOO_SLOW: Final = "The results could not be sent within the time of the traversal. Limit it, or count them."


class Runner:
    """Runs the requests of all connections. One per process."""

    def __init__(
        self,
        engine: GraphEngine,
        settings: GremlinSettings,
        meter: RequestMeter,
        *,
        new_activity_id: Callable[[], str],
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._seconds_max: float = settings.gremlin_evaluation_seconds_max
        self._new_activity_id = new_activity_id
        self._monotonic_seconds = meter.monotonic_seconds
        self._faults = meter.faults
        if meter.faults is not None:
            meter.faults.know_door(DOOR, _NAMES)
        self._pipeline: Pipeline[Call, Answer] = Pipeline(
            DOOR, _Words(), self._handle, meter, transport_errors=(RequestUnread,)
        )

    def writer(
        self,
        request: Request,
        encoder: Encoder | None = None,
        *,
        batch_size: int = 1,
        bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> ResponseWriter:
        """Return a writer of answers to a request, in its format."""
        return ResponseWriter(
            request.request_id,
            encoder or encoder_for(request.format, is_untyped=request.is_untyped, is_bytecode=False),
            activity_id=self._new_activity_id(),
            batch_size=batch_size,
            item_bytes_max=self._settings.gremlin_result_bytes_max,
            message_bytes_max=bytes_max,
            monotonic_seconds=self._monotonic_seconds,
        )

    async def run(self, request: Request, admit: Callable[[Call], Awaitable[Login]], send: Send) -> Answer:
        """Answer a request: send all messages but the last, which is returned."""
        return await self._pipeline.run(Call(request, self.writer(request), send, admit))

    async def run_whole(
        self, request: Request, admit: Callable[[Call], Awaitable[Login]], error_encoder: Encoder
    ) -> Answer:
        """Answer a request with a single message. One with more results than it has room for is refused."""
        call = Call(
            request,
            self.writer(request),
            _refuse_size,
            admit,
            error_encoder=error_encoder,
            whole_bytes_max=self._settings.gremlin_result_bytes_max,
        )
        return await self._pipeline.run(call)

    async def log_in(self, request: Request, admit: Callable[[Call], Awaitable[Login]]) -> tuple[Login | None, Answer]:
        """Return the login of an authentication, and its answer: the refusal, if there is no login."""
        call = Call(request, self.writer(request), _refuse_size, admit, operation=AUTHENTICATION)
        answer = await self._pipeline.run(call)
        return call.login, answer

    def refuse(self, request: Request, refusal: Refusal) -> bytes:
        """Return the answer to a request that does not run."""
        return self.writer(request).refuse(refusal, 0.0)

    async def _handle(self, call: Call) -> Answer:
        login = call.login = await call.admit(call)
        if call.operation == AUTHENTICATION:
            return Answer(SUCCESS, call.writer.finish_without_results(SUCCESS), call.writer.encoder)
        request = call.request
        route = (request.processor, request.operation)
        if request.problem is not None:
            raise request.problem
        if route == CLOSE:
            call.operation = request.operation
            return Answer(NO_CONTENT, call.writer.finish_without_results(NO_CONTENT), call.writer.encoder)
        if route not in OPERATIONS:
            raise MalformedMessage(f"Unsupported request operation: {_shown(request.operation)}.")
        call.operation = request.operation
        if self._faults is not None:
            fault = self._faults.take(DOOR, call.operation)
            if fault is not None:
                raise fault
        wanted = read_evaluation(request, seconds_max=self._settings.gremlin_evaluation_seconds_max)
        whole = call.whole_bytes_max
        encoder = wanted.encoder_for(materializes=wanted.materializes_properties)
        call.writer = (
            self.writer(request, encoder, batch_size=wanted.batch_size)
            if whole is None
            else self.writer(request, encoder, batch_size=whole, bytes_max=whole)
        )
        await self._evaluate(call, login, wanted)
        return Answer(SUCCESS, call.writer.finish(call.charge), call.writer.encoder)

    async def _evaluate(self, call: Call, login: Login, wanted: EvaluationRequest) -> None:
        writer = call.writer
        evaluation = call.evaluation = wanted.start(self._engine, login.graph, may_write=login.may_write)
        if evaluation is None:
            return

        def charge() -> float:
            return evaluation.charge

        started_at = self._monotonic_seconds()
        batches = evaluation.batches()
        try:
            async for results in batches:
                own = evaluation.source_options
                _heed(own, call, wanted)
                seconds_max = min(own.timeout_seconds or wanted.timeout_seconds, self._seconds_max)
                for value, bulk in results:
                    for message in writer.add(value, bulk, charge):
                        await call.send(message)
                        if self._monotonic_seconds() > started_at + seconds_max:
                            # A result may count more often than could ever be sent.
                            raise TimeExceeded(_TOO_SLOW)
        finally:
            await close_chunks(batches)


def _heed(own: SourceOptions, call: Call, wanted: EvaluationRequest) -> None:
    """Answer as the traversal itself wants it, where its wish differs from that of its request."""
    if own.materializes_properties is not None:
        call.writer.encoder = wanted.encoder_for(materializes=own.materializes_properties)
    if own.batch_size is not None and call.whole_bytes_max is None:
        call.writer.batch_size = min(own.batch_size, BATCH_SIZE_MAX)


async def _refuse_size(_: bytes) -> None:
    raise ResultRefused("The results are too large for one answer. Use a websocket, which brings them in parts.")


def _shown(name: str) -> str:
    return f"'{name[:_SHOWN_CHARACTERS_MAX]}'"


class _Words:
    """The words of the door for calls without a result."""

    def refuse(self, error: AsterismError, call: Call, /) -> Answer:
        return self._answer(refusal_of(error), call)

    def refuse_own(self, problem: Exception, call: Call, /) -> Answer | None:
        refusal = as_refusal(problem)
        return None if refusal is None else self._answer(refusal, call)

    def fail(self, call: Call, /) -> Answer:
        return self._answer(UNFORESEEN, call)

    def describe(self, call: Call, /) -> str:
        if call.login is None:
            return f"{call.operation} before the login"
        graph = call.login.graph
        return f"{call.operation} on the graph {graph.name!r} of the database {graph.database!r}"

    def charge_of(self, call: Call, answer: Answer, /) -> str:  # noqa: ARG002 - the call knows it
        return f"{call.charge:.2f}"

    def _answer(self, refusal: Refusal, call: Call) -> Answer:
        writer = call.writer
        if call.error_encoder is not None:
            writer.encoder = call.error_encoder
        message = writer.refuse(refusal, call.charge)
        return Answer(refusal.code, message, writer.encoder, refusal, writer.text_of(refusal))
