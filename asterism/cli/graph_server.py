"""The Gremlin port of a running server, as commands reach it: a traversal for each HTTP request, with the key."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from asterism.cli.failure import CommandFailed
from asterism.cli.server_address import KEY_REFUSED, ServerAddress

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient

# Longer than the server lets a traversal run.
TIMEOUT_SECONDS = 120.0
NO_PORT = "the server has no Gremlin port; start it with --apis nosql,gremlin"
_SENTENCE = re.compile(r"ExceptionMessage : \s*(?P<sentence>.*?)\s*(?:\n\s*GremlinRequestId|\Z)", re.DOTALL)
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class TraversalReply:
    """Results in the form of the service, and the attributes of the reply."""

    results: list[Any]
    attributes: dict[str, Any]

    @property
    def charge(self) -> float:
        return float(self.attributes.get("x-ms-total-request-charge", 0.0))

    @property
    def milliseconds(self) -> float:
        return float(self.attributes.get("x-ms-total-server-time-ms", 0.0))


class GraphServer:
    """Client of one graph; every failure is a CommandFailed."""

    def __init__(self, admin: AdminClient, endpoint: str, key: str, *, insecure: bool) -> None:
        self._server = ServerAddress.of(endpoint, key, insecure=insecure)
        self._key = key.strip()
        place = admin.get("server").get("gremlin")
        if place is None:
            raise CommandFailed(NO_PORT)
        self._port: int = place["port"]
        self._is_encrypted: bool = place["is_encrypted"]

    def run(self, database: str, graph: str, text: str, bindings: dict[str, Any]) -> TraversalReply:
        # Escaped, because a colon ends the user of such credentials, and a slash a name.
        user = f"/dbs/{quote(database, safe='')}/colls/{quote(graph, safe='')}"
        credentials = base64.b64encode(f"{user}:{self._key}".encode()).decode("ascii")
        body = json.dumps({"gremlin": text, "bindings": bindings, "language": "gremlin-groovy"}).encode()
        headers = {
            "authorization": f"Basic {credentials}",
            "content-type": "application/json",
            "accept": "application/json",
        }
        return _reply(*self._send(body, headers))

    def _send(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = self._connection()
        where = f"{self._server.host}:{self._port}"
        try:
            connection.request("POST", "/gremlin", body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except ssl.SSLCertVerificationError as error:
            raise CommandFailed(
                f"the certificate of {where} is not trusted ({error.verify_message}); --insecure accepts it"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise CommandFailed(f"the Gremlin port {where} does not answer: {error or type(error).__name__}") from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._is_encrypted:
            return http.client.HTTPSConnection(
                self._server.host, self._port, timeout=TIMEOUT_SECONDS, context=self._server.tls()
            )
        return http.client.HTTPConnection(self._server.host, self._port, timeout=TIMEOUT_SECONDS)


def _reply(http_status: int, content: bytes) -> TraversalReply:
    try:
        reply = json.loads(content)
        status = reply["status"]
        code, message, attributes = status["code"], status.get("message", ""), status.get("attributes") or {}
        results = (reply.get("result") or {}).get("data")
    except (ValueError, KeyError, TypeError, AttributeError):
        if http_status == _UNAUTHORIZED:
            raise CommandFailed(KEY_REFUSED) from None
        raise CommandFailed(f"the Gremlin port does not answer like an Asterism server ({http_status})") from None
    if _UNAUTHORIZED in (code, http_status):
        raise CommandFailed(KEY_REFUSED)
    if code >= 300:
        raise CommandFailed(sentence_of(message, attributes, code))
    return TraversalReply(results or [], attributes)


def sentence_of(message: str, attributes: dict[str, Any], code: int) -> str:
    """Return the sentence of a refusal, without the lines that the service puts around it."""
    found = _SENTENCE.search(message)
    sentence = found["sentence"] if found is not None else message.strip()
    status = attributes.get("x-ms-status-code", code)
    wait = attributes.get("x-ms-retry-after-ms")
    return f"{status}: {sentence or 'the server gave no reason'}" + (f" Try again after {wait}." if wait else "")
