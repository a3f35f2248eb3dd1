"""A door of two routes on the shared room of storage, and requests signed for it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from itertools import count
from urllib.parse import unquote

from asterism.access.header_order import service_order
from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.access.sas_grants import Policy, ResourceType
from asterism.access.shared_key import shared_key_signature
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.pipeline import RequestMeter
from asterism.apis.storage.accounts import parse_account
from asterism.apis.storage.address import Address, ServiceName
from asterism.apis.storage.call import Call, Resource
from asterism.apis.storage.door import StorageDoor
from asterism.apis.storage.refusals import Refusal
from asterism.apis.storage.routes import STREAMED, Needs, Route
from asterism.apis.storage.service_calls import (
    READ_SERVICE,
    SERVICE_BODY_BYTES_MAX,
    WRITE_SERVICE,
    get_properties,
    get_statistics,
    get_user_delegation_key,
    set_properties,
)
from asterism.apis.storage.xml_errors import xml_translation
from asterism.apis.transports.http import Request, Response
from asterism.clock import SYSTEM_CLOCK
from asterism.errors import ResourceNotFound

ACCOUNT = DEVELOPMENT_ACCOUNT
KEY = base64.b64decode(DEVELOPMENT_KEY)
HOST = "127.0.0.1:10000"
BODY_BYTES_MAX = 1000


@dataclass
class ToyContext:
    blobs: dict[str, bytes] = field(default_factory=dict)
    public: set[str] = field(default_factory=set)
    policies: dict[str, Policy] = field(default_factory=dict)
    handled: list[str] = field(default_factory=list)
    # Of the next batch, and its answers.
    parts: list[Request] = field(default_factory=list)
    answers: list[Response] = field(default_factory=list)


class ToyCatalog:
    """A catalog that other processes change: they do so when it catches up."""

    def __init__(self, context: ToyContext) -> None:
        self.is_shared = False
        self.known_lsn = 0
        self.arriving: dict[str, bytes] = {}
        self._context = context

    async def catch_up(self) -> int:
        self.known_lsn += len(self.arriving)
        self._context.blobs |= self.arriving
        self.arriving = {}
        return self.known_lsn


class ToyDocuments:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}

    async def get_account_document(self, account: str, name: str) -> bytes | None:
        return self.kept.get((account, name))

    async def replace_account_document(self, account: str, name: str, content: bytes, *, before: bytes | None) -> bool:
        if self.kept.get((account, name)) != before:
            return False
        self.kept[account, name] = content
        return True


async def put_blob(call: Call[ToyContext]) -> Response:
    call.context.blobs[call.resource.path] = call.request.body
    return Response(201, [("etag", '"1"')])


async def append_blob(call: Call[ToyContext]) -> Response:
    pieces = [piece async for piece in call.request.body_chunks(bytes_max=None)]
    call.context.blobs[call.resource.path] = b"".join(pieces)
    return Response(201, [])


async def copy_blob(call: Call[ToyContext]) -> Response:
    source = await call.door.find_source(call.headers.get("x-ms-copy-source") or "", within=call)
    assert source is not None
    call.context.blobs[call.resource.path] = call.context.blobs[source.resource.path]
    return Response(202, [])


async def get_blob(call: Call[ToyContext]) -> Response:
    call.context.handled.append(call.resource.path)
    found = call.context.blobs.get(call.resource.path)
    if found is None:
        raise Refusal(404, "BlobNotFound", "The specified blob does not exist.")
    return Response(200, [("content-type", "text/plain"), *call.signed_response_headers().items()], found)


async def run_batch(call: Call[ToyContext]) -> Response:
    for part in call.context.parts:
        answer = await call.door.answer_part(part, within=call, operations={"put_blob", "fail"})
        call.context.answers.append(answer)
    return Response(202, [])


async def fail(call: Call[ToyContext]) -> Response:
    raise ResourceNotFound(kind="blob", name=call.resource.path)


OBJECT_READ = Needs(ResourceType.OBJECT, "r", "r", anonymous=True)
OBJECT_WRITE = Needs(ResourceType.OBJECT, "c|w", "c|w")
ROUTES: tuple[Route[ToyContext], ...] = (
    Route("PUT", "blob", "copy_blob", copy_blob, "Copy.", needs=OBJECT_WRITE, header="x-ms-copy-source"),
    Route("PUT", "blob", "put_blob", put_blob, "Put.", needs=OBJECT_WRITE, body_bytes_max=BODY_BYTES_MAX),
    Route("PUT", "blob", "append", append_blob, "Add.", comp="block", needs=OBJECT_WRITE, body_bytes_max=STREAMED),
    Route("GET", "blob", "get_blob", get_blob, "Get.", needs=OBJECT_READ),
    Route("HEAD", "blob", "head_blob", get_blob, "Head.", needs=OBJECT_READ),
    Route("DELETE", "blob", "fail", fail, "Fail.", needs=OBJECT_WRITE),
    Route(
        "GET", "service", "get_properties", get_properties, "", comp="properties", restype="service", needs=READ_SERVICE
    ),
    Route(
        "PUT",
        "service",
        "set_properties",
        set_properties,
        "",
        comp="properties",
        restype="service",
        needs=WRITE_SERVICE,
        body_bytes_max=SERVICE_BODY_BYTES_MAX,
    ),
    Route("POST", "service", "batch", run_batch, "", comp="batch"),
    Route("GET", "service", "stats", get_statistics, "", comp="stats", restype="service", needs=READ_SERVICE),
    Route(
        "POST",
        "service",
        "key",
        get_user_delegation_key,
        "",
        comp="userdelegationkey",
        restype="service",
        needs=READ_SERVICE,
        is_write=False,
        body_bytes_max=SERVICE_BODY_BYTES_MAX,
    ),
)


class ToyRules:
    name = "toy"
    server = "Toy/1.0"
    routes: Sequence[Route[ToyContext]] = ROUTES
    translation = xml_translation({})

    def __init__(self, service: ServiceName) -> None:
        self.service = service
        self.context = ToyContext()
        self.catalog = ToyCatalog(self.context)
        self.documents = ToyDocuments()

    def read_resource(self, address: Address, query: Mapping[str, str]) -> Resource:
        container, _, name = address.resource.partition("/")
        return Resource("blob" if container else "service", container, name)

    async def policies(self, account: str, resource: Resource) -> Mapping[str, Policy]:
        return self.context.policies

    async def public_access(self, call: Call[ToyContext]) -> bool:
        return call.resource.container in self.context.public


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return self.headers["x-ms-error-code"]


class ToyDoor:
    def __init__(self, service: ServiceName = "blob", *, guard: BrowserGuard | None = None) -> None:
        numbers = count()
        self.rules = ToyRules(service)
        self.context = self.rules.context
        self.door = StorageDoor(
            self.rules,
            accounts={ACCOUNT: parse_account(f"{ACCOUNT}:{DEVELOPMENT_KEY}")},
            clock=SYSTEM_CLOCK,
            unsigned_tokens=True,
            new_request_id=lambda: f"request-{next(numbers)}",
            guard=guard,
            meter=RequestMeter(SYSTEM_CLOCK.monotonic_seconds),
        )

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        key: bytes | None = KEY,
        scheme: str = "http",
        account: str = ACCOUNT,
    ) -> Answer:
        """`path` as it is on the wire, behind the account; without a key, the request is not signed."""
        request = signed_request(
            method, f"/{account}/{path}", body, query=query, headers=headers, key=key, scheme=scheme, account=account
        )
        response = await self.door.answer(request)
        assert isinstance(response, Response)
        return Answer(response.status, dict(response.headers), response.body)


def signed_request(
    method: str,
    wire_path: str,
    body: bytes = b"",
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    key: bytes | None = KEY,
    scheme: str = "http",
    account: str = ACCOUNT,
) -> Request:
    sent = {"x-ms-date": formatdate(usegmt=True), "content-length": str(len(body)), **(headers or {})}
    if key is not None:
        names = service_order(name for name in sent if name.startswith("x-ms-"))
        named = "".join(f"{name}:{sent[name]}\n" for name in names)
        length = sent["content-length"] if body else ""
        plain = f"\n\n{length}\n\n{sent.get('content-type', '')}\n" + "\n" * 6
        parameters = sorted(pair.partition("=") for pair in query.split("&") if pair)
        tail = "".join(f"\n{name}:{unquote(value)}" for name, _, value in parameters)
        text = f"{method}\n{plain}{named}/{account}{wire_path}{tail}"
        sent["authorization"] = f"SharedKey {account}:{shared_key_signature(key, text)}"
    return Request(method, unquote(wire_path), query, sent, body, scheme, HOST, client_address="127.0.0.1:50000")
