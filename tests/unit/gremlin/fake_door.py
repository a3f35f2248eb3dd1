"""A door without a database: an engine that answers from a script, and a websocket of two queues."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from asterism.apis.gremlin.connection import GremlinConnection
from asterism.apis.gremlin.login import Login, LoginDesk
from asterism.apis.gremlin.malformed import InvalidCredentials
from asterism.apis.gremlin.running import Runner
from asterism.apis.gremlin.sasl import Credentials
from asterism.apis.gremlin.settings import GremlinSettings
from asterism.apis.pipeline import RequestMeter
from asterism.apis.transports.http import ClientGone, Headers
from asterism.languages.gremlin.evaluation import EvaluationOptions, GraphName, SourceOptions
from asterism.languages.gremlin.tree import Traversal

Result = TypeVar("Result")
ACTIVITY_ID = "11111111-2222-3333-4444-555555555555"
USER = "/dbs/db/colls/graph"
KEY = "key=="
MIME = "application/vnd.gremlin-v2.0+json"


class FakeEvaluation:
    """Yields batches; an exception among them is raised, and an event is waited for."""

    def __init__(self, script: Sequence[Any]) -> None:
        self._script = script
        self.charge = 0.0
        self.source_options = SourceOptions()
        self.is_closed = False

    async def batches(self) -> AsyncIterator[list[tuple[Any, int]]]:
        try:
            for each in self._script:
                if isinstance(each, Exception):
                    raise each
                if isinstance(each, asyncio.Event):
                    await each.wait()
                    continue
                self.charge += 1.5
                yield each
        finally:
            self.is_closed = True


class FakeEngine:
    """Answers each text with a script of its own."""

    def __init__(self, scripts: Mapping[str, Sequence[Any]]) -> None:
        self.scripts = scripts
        self.calls: list[tuple[GraphName, str | Traversal, Mapping[str, Any], EvaluationOptions]] = []
        self.evaluations: list[FakeEvaluation] = []

    def evaluate_text(
        self, graph: GraphName, text: str, bindings: Mapping[str, Any], options: EvaluationOptions, /
    ) -> FakeEvaluation:
        return self._start(graph, text, bindings, options)

    def evaluate_bytecode(
        self, graph: GraphName, traversal: Traversal, options: EvaluationOptions, /
    ) -> FakeEvaluation:
        return self._start(graph, traversal, {}, options)

    def _start(
        self, graph: GraphName, asked: str | Traversal, bindings: Mapping[str, Any], options: EvaluationOptions
    ) -> FakeEvaluation:
        self.calls.append((graph, asked, bindings, options))
        evaluation = FakeEvaluation(self.scripts.get(asked if isinstance(asked, str) else "bytecode", [[("ok", 1)]]))
        self.evaluations.append(evaluation)
        return evaluation


class FakeDesk(LoginDesk):
    """Knows one user and one key, until it forgets them."""

    def __init__(self) -> None:
        self.is_open = True
        self.problem: Exception | None = None

    async def check(self, credentials: Credentials, authority: str) -> Login:
        if self.problem is not None:
            raise self.problem
        if not self.is_open or (credentials.user, credentials.password) != (USER, KEY):
            raise InvalidCredentials
        return Login(GraphName("db", "graph", "account"), True, 0, credentials)

    async def renewed(self, login: Login, authority: str) -> Login:
        return await self.check(login.credentials, authority)


class FakeSocket:
    """A WebSocket between a test and a connection."""

    path = "/"
    query_string = ""
    scheme = "ws"
    offered_subprotocols: Sequence[str] = ()
    peer_address = local_address = "127.0.0.1:1"
    server_name: str | None = None
    close_code: int | None = None
    idle_seconds_max: float | None = None
    is_draining = False

    def __init__(self) -> None:
        self.headers: Headers = {"host": "localhost:8901"}
        self.inbox: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        # Cleared: the client reads nothing.
        self.reads = asyncio.Event()
        self.reads.set()
        self.gone = asyncio.Event()

    async def accept(self, *, subprotocol: str | None = None) -> None: ...

    async def refuse(self, status: int, body: bytes = b"") -> None: ...

    async def receive(self) -> str | bytes | None:
        return await self.inbox.get()

    async def send(self, message: str | bytes) -> None:
        assert isinstance(message, bytes), "some clients cannot read a text message"
        self.sent.put_nowait(message)
        await self.reads.wait()
        if self.gone.is_set():
            raise ClientGone

    async def while_connected(self, work: Awaitable[Result]) -> Result:
        return await work

    async def until_draining(self) -> None: ...

    async def close(self, code: int = 1000, reason: str = "") -> None: ...


class Client:
    """The test's end of a connection."""

    def __init__(self, engine: FakeEngine, desk: FakeDesk | None = None, **settings: int) -> None:
        self.socket = FakeSocket()
        self.engine = engine
        self.desk = desk or FakeDesk()
        clock = iter(range(10**9))
        runner = Runner(
            engine,
            GremlinSettings(**settings),
            RequestMeter(lambda: float(next(clock))),
            new_activity_id=lambda: ACTIVITY_ID,
        )
        self.runner = runner
        self._task = asyncio.create_task(GremlinConnection(self.socket, runner, self.desk).serve())

    def send(self, request: Any, mime: str = MIME) -> None:
        self.socket.inbox.put_nowait(bytes([len(mime)]) + mime.encode() + json.dumps(request).encode())

    async def receive(self) -> Any:
        return json.loads(await asyncio.wait_for(self.socket.sent.get(), 60))

    async def log_in(self) -> None:
        """Log in without a challenge, as a client that knows that there will be one."""
        self.send(authentication(number=0))
        assert (await self.receive())["status"]["code"] == 200

    async def leave(self) -> None:
        self.socket.gone.set()
        self.socket.reads.set()
        self.socket.inbox.put_nowait(None)
        await asyncio.wait_for(self._task, 60)


def request_id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012d}"


def script(text: str, *, number: int = 1, **more: Any) -> dict[str, Any]:
    return {"requestId": request_id(number), "op": "eval", "processor": "", "args": {"gremlin": text, **more}}


def authentication(user: str = USER, password: str = KEY, *, number: int = 1, name: str = "sasl") -> dict[str, Any]:
    given = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
    return {"requestId": request_id(number), "op": "authentication", "processor": "traversal", "args": {name: given}}


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that other tasks bring about."""
    async with asyncio.timeout(180):
        while not condition():
            await asyncio.sleep(0.001)
