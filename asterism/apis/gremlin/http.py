"""Scripts over HTTP: one POST, credentials in its header, one answer with all results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.gremlin.call import Answer, Call
from asterism.apis.gremlin.encoders import encoder_for
from asterism.apis.gremlin.errors import UNAUTHORIZED, Refusal
from asterism.apis.gremlin.frames import Format, read_frame, read_mime
from asterism.apis.gremlin.graphson.reading import parse_json, read_value
from asterism.apis.gremlin.login import Login, LoginDesk
from asterism.apis.gremlin.malformed import InvalidCredentials, MalformedMessage
from asterism.apis.gremlin.requests import Request, read_request
from asterism.apis.gremlin.running import Runner
from asterism.apis.gremlin.sasl import read_basic
from asterism.apis.transports.http import HeaderList, Response
from asterism.apis.transports.http import Request as HttpRequest
from asterism.errors import Forbidden
from asterism.values.json.text import dumps_parsed

# Errors are JSON, whatever the format of results would have been.
_ERRORS: Final = encoder_for(Format.JSON, is_untyped=True, is_bytecode=False)
_MIME_START: Final = b"application/"
_BAD_REQUEST: Final = 400
_FAULTS_OF_REQUESTS: Final = frozenset({498, 595, 597})
_METHOD_NOT_ALLOWED: Final = (
    'Send a POST with a JSON object such as {"gremlin": "g.V().limit(1)"}, or open a websocket at this address.'
)


class HttpScripts:
    """Answers requests that are not websockets."""

    def __init__(
        self,
        runner: Runner,
        desk: LoginDesk,
        guard: BrowserGuard | None,
        *,
        new_request_id: Callable[[], str],
    ) -> None:
        self._runner = runner
        self._desk = desk
        self._guard = guard
        self._new_request_id = new_request_id

    async def answer(self, http: HttpRequest) -> Response:
        async def admit(call: Call) -> Login:
            login = await self._check(http)
            body = http.body if http.read_body is None else await http.read_body()
            try:
                call.request = self._read(http, body, call.request)
            except MalformedMessage as problem:
                call.request.problem = problem
            return login

        request = Request(Format.JSON, is_untyped=True, request_id=self._new_request_id())
        answer = await self._runner.run_whole(request, admit, _ERRORS)
        return _response(answer, is_method_wrong=http.method != "POST")

    async def _check(self, http: HttpRequest) -> Login:
        if http.method != "POST":
            raise MalformedMessage(_METHOD_NOT_ALLOWED)
        reason = None if self._guard is None else self._guard.refusal(http.headers, http.authority)
        if reason is not None:
            raise Forbidden(reason=reason)
        credentials = read_basic(http.headers.get("authorization"))
        if credentials is None:
            raise InvalidCredentials
        return await self._desk.check(credentials, http.authority)

    def _read(self, http: HttpRequest, body: bytes, request: Request) -> Request:
        if body[1 : 1 + len(_MIME_START)] == _MIME_START:
            # As gremlinpython sends it: the message that it would send over a websocket.
            return read_request(read_frame(body))
        accept = (http.headers.get("accept") or "").partition(",")[0].strip()
        if accept and "*" not in accept:
            request.format, request.is_untyped = read_mime(accept)
        fields = read_value(parse_json(body))
        if not isinstance(fields, dict):
            raise MalformedMessage("The body is a JSON object with the script as 'gremlin'.")
        request.operation = "eval"
        request.arguments = fields
        return request


def _response(answer: Answer, *, is_method_wrong: bool) -> Response:
    headers: HeaderList = [("content-type", answer.encoder.content_type)]
    if answer.refusal is None:
        return Response(200, headers, answer.message)
    if answer.status == UNAUTHORIZED:
        headers.append(("www-authenticate", 'Basic realm="/dbs/DATABASE/colls/GRAPH and a key"'))
    if is_method_wrong:
        headers.append(("allow", "POST"))
    # Beside the message in the status, where clients look for it.
    body = b'{"message":%b,%b' % (dumps_parsed(answer.refusal_text), answer.message[1:])
    return Response(405 if is_method_wrong else _http_status(answer.refusal), headers, body)


def _http_status(refusal: Refusal) -> int:
    """Return the service's status where it is one of HTTP, and else the nearest."""
    if refusal.status in range(400, 600):
        return refusal.status
    return _BAD_REQUEST if refusal.code in _FAULTS_OF_REQUESTS else 500
