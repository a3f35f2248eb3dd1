"""Scripts over HTTP: one POST, credentials in its header, one answer with all results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.gremlin.call import Answer
from asterism.apis.gremlin.encoders import encoder_for
from asterism.apis.gremlin.errors import (
    NO_CONTENT,
    SUCCESS,
    UNAUTHORIZED,
    UNFORESEEN,
    Refusal,
    as_refusal,
    malformed,
    refusal_of,
)
from asterism.apis.gremlin.frames import Format, read_frame, read_mime
from asterism.apis.gremlin.graphson.reading import parse_json, read_value
from asterism.apis.gremlin.login import LoginDesk
from asterism.apis.gremlin.malformed import InvalidCredentials, MalformedMessage
from asterism.apis.gremlin.requests import Request, read_request
from asterism.apis.gremlin.running import Runner
from asterism.apis.gremlin.sasl import read_basic
from asterism.apis.transports.http import HeaderList, Response
from asterism.apis.transports.http import Request as HttpRequest
from asterism.errors import AsterismError, Forbidden
from asterism.values.json.text import dumps_parsed

# Errors are JSON, whatever the format of results would have been.
ERRORS: Final = encoder_for(Format.JSON, is_untyped=True, is_bytecode=False)
_MIME_START: Final = b"application/"
_STATUSES: Final = {SUCCESS: 200, NO_CONTENT: 200, UNAUTHORIZED: 401, 498: 400}
_FORBIDDEN: Final = 403
_METHOD_NOT_ALLOWED: Final = malformed(
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
        request = Request(Format.JSON, is_untyped=True, request_id=self._new_request_id())
        if http.method != "POST":
            return self._refuse(request, _METHOD_NOT_ALLOWED, status=405, headers=[("allow", "POST")])
        reason = None if self._guard is None else self._guard.refusal(http.headers, http.authority)
        if reason is not None:
            return self._refuse(request, refusal_of(Forbidden(reason=reason)), status=_FORBIDDEN)
        credentials = read_basic(http.headers.get("authorization"))
        try:
            if credentials is None:
                raise InvalidCredentials
            login = await self._desk.check(credentials, http.authority)
        except (InvalidCredentials, AsterismError) as problem:
            return self._refuse(request, as_refusal(problem) or UNFORESEEN)
        body = http.body if http.read_body is None else await http.read_body()
        try:
            request = self._read(http, body, request)
        except MalformedMessage as problem:
            request.problem = problem
        running = self._runner.run_whole(request, login, ERRORS)
        return _response(await running)

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

    def _refuse(
        self, request: Request, refusal: Refusal, *, status: int | None = None, headers: HeaderList | None = None
    ) -> Response:
        writer = self._runner.writer(request, ERRORS)
        answer = Answer(refusal.code, writer.refuse(refusal, 0.0), ERRORS, writer.text_of(refusal))
        return _response(answer, status=status, headers=headers)


def _response(answer: Answer, *, status: int | None = None, headers: HeaderList | None = None) -> Response:
    sent = [("content-type", answer.encoder.content_type), *(headers or [])]
    body = answer.message
    if answer.refusal_text is not None:
        # Beside the message in the status, where clients look for it.
        body = b'{"message":%b,%b' % (dumps_parsed(answer.refusal_text), body[1:])
    if answer.status == UNAUTHORIZED:
        sent.append(("www-authenticate", 'Basic realm="/dbs/<database>/colls/<graph> and a key"'))
    return Response(status or _STATUSES.get(answer.status, 500), sent, body)
