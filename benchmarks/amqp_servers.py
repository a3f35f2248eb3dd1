"""The servers of the case for AMQP, each one process on one core: Asterism, with its entities, and the bare loop."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus

from benchmarks.amqp_frames import AMQP_HEADER, SASL_HEADER
from benchmarks.amqp_wire import Login
from benchmarks.processes import RunningServer, free_port, python_module, running
from benchmarks.subject import PROJECT, Subject
from benchmarks.wire import Caller

NAMESPACE = "asterism"
RULE, KEY = "RootManageSharedAccessKey", "SAS_KEY_VALUE"
TOKEN_SECONDS = 3600
QUEUE_MEGABYTES = 5 * 1024
_ATOM = "http://www.w3.org/2005/Atom"
_BUS = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
_HUBS = f"/subscriptions/0/resourceGroups/group/providers/Microsoft.EventHub/namespaces/{NAMESPACE}/eventhubs"


@dataclass(frozen=True)
class AmqpServer:
    process: RunningServer
    login: Login

    @property
    def port(self) -> int:
        return self.process.port


def _speaks_amqp(received: bytes) -> bool:
    return received.startswith(AMQP_HEADER[:4])


@contextmanager
def running_amqp(
    command: Sequence[str],
    *,
    port: int,
    log_name: str,
    login: Login,
    folder: Path = PROJECT,
    environment: dict[str, str] | None = None,
) -> Iterator[AmqpServer]:
    with running(
        command,
        port=port,
        log_name=log_name,
        probe=SASL_HEADER,
        folder=folder,
        environment=environment,
        is_answer=_speaks_amqp,
    ) as process:
        yield AmqpServer(process, login)


@contextmanager
def running_messaging(subject: Subject, data: Path) -> Iterator[AmqpServer]:
    """Asterism with the door alone. Each of its ports takes AMQP and HTTP; one is enough."""
    port = free_port()
    arguments = ["--data", str(data), "--apis", "amqp", "--no-throttle", "--amqp-port", str(port)]
    arguments += ["--amqps-port", str(free_port()), "--messaging-port", str(free_port())]
    with running_amqp(
        [*subject.command, *arguments],
        port=port,
        log_name="amqp",
        login=Login(RULE, KEY),
        environment=subject.environment,
    ) as server:
        yield server


@contextmanager
def running_bare_amqp(data: Path) -> Iterator[AmqpServer]:
    port = free_port()
    command = python_module("benchmarks.bare_amqp", str(port), str(data))
    with running_amqp(command, port=port, log_name="bare-amqp", login=Login("any", "any")) as server:
        yield server


# --- entities ---------------------------------------------------------------------------------------------------------


def shared_access_signature(resource: str, *, expires: int) -> str:
    quoted = quote_plus(resource)
    digest = hmac.digest(KEY.encode(), f"{quoted}\n{expires}".encode(), "sha256")
    signature = quote_plus(base64.b64encode(digest))
    return f"SharedAccessSignature sr={quoted}&sig={signature}&se={expires}&skn={RULE}"


def put_request(path: str, body: bytes, *, content_type: str, now_wall_seconds: float) -> bytes:
    token = shared_access_signature("http://localhost/", expires=int(now_wall_seconds) + TOKEN_SECONDS)
    lines = [f"PUT {path} HTTP/1.1", "host: localhost", f"authorization: {token}", f"content-type: {content_type}"]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


def description(kind: str, properties: Sequence[tuple[str, str]]) -> bytes:
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in properties)
    content = f'<{kind}Description xmlns="{_BUS}">{inner}</{kind}Description>'
    return f'<entry xmlns="{_ATOM}"><content type="application/xml">{content}</content></entry>'.encode()


# Nothing is delivered twice while a load runs.
_LOCK = ("LockDuration", "PT5M")
_SIZE = ("MaxSizeInMegabytes", str(QUEUE_MEGABYTES))


class Administration:
    """Creates entities over one connection."""

    def __init__(self, server: AmqpServer) -> None:
        self._caller = Caller(server.port)

    async def close(self) -> None:
        await self._caller.close()

    async def create_queue(self, name: str) -> None:
        await self._put_entity(f"/{name}", "Queue", [_LOCK, _SIZE])

    async def create_topic(self, name: str, *, subscriptions: int) -> None:
        await self._put_entity(f"/{name}", "Topic", [_SIZE])
        for number in range(subscriptions):
            await self._put_entity(f"/{name}/subscriptions/s{number}", "Subscription", [_LOCK])

    async def create_hub(self, name: str, *, partitions: int) -> None:
        properties = {"partitionCount": partitions, "messageRetentionInDays": 1}
        await self._put(f"{_HUBS}/{name}", json.dumps({"properties": properties}).encode(), "application/json")

    async def _put_entity(self, path: str, kind: str, properties: Sequence[tuple[str, str]]) -> None:
        await self._put(f"{path}?api-version=2021-05", description(kind, properties), "application/atom+xml")

    async def _put(self, path: str, body: bytes, content_type: str) -> None:
        request = put_request(path, body, content_type=content_type, now_wall_seconds=time.time())
        await self._caller.expect(request, 200, 201)
