"""Client of a running server for the commands: the admin door over HTTP, with the standard library alone."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import Any, cast
from urllib.parse import urlencode

from asterism.cli.failure import CommandFailed
from asterism.cli.server_address import KEY_REFUSED, ServerAddress

TIMEOUT_SECONDS = 30.0


class Refused(CommandFailed):
    """A refusal by the server; `reply` is its JSON."""

    def __init__(self, text: str, reply: dict[str, Any]) -> None:
        super().__init__(text)
        self.reply = reply


class AdminClient:
    """Client that signs and sends requests; every failure is a CommandFailed."""

    def __init__(self, endpoint: str, key: str, *, insecure: bool) -> None:
        self._address = address = ServerAddress.of(endpoint, key, insecure=insecure)
        handlers: list[urllib.request.BaseHandler] = []
        if address.scheme == "https":
            handlers.append(urllib.request.HTTPSHandler(context=address.tls()))
        if address.is_local:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, name: str, **parameters: str) -> dict[str, Any]:
        return self._ask("GET", name, parameters=parameters)

    def post(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._ask("POST", name, body=body)

    def lines(self, name: str, **parameters: str) -> Iterator[bytes]:
        """Yield the lines of an answer that is too long to be read as a whole."""
        with self._open("GET", name, parameters=parameters) as response:
            yield from response

    def _ask(
        self, verb: str, name: str, *, parameters: dict[str, str] | None = None, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        with self._open(verb, name, parameters=parameters, body=body) as response:
            return cast(dict[str, Any], json.load(response))

    @contextmanager
    def _open(
        self, verb: str, name: str, *, parameters: dict[str, str] | None = None, body: dict[str, Any] | None = None
    ) -> Iterator[HTTPResponse]:
        """Send a request; failures to read its answer are failures of the request."""
        link = f"_asterism/{name}"
        query = f"?{urlencode(parameters)}" if parameters else ""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self._address.url}/{link}{query}",
            data=data,
            method=verb,
            headers=self._address.signed_headers(verb, resource_type="asterism", link=link),
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                yield response
        except urllib.error.HTTPError as refused:
            raise _refusal(refused) from None
        except urllib.error.URLError as error:
            raise CommandFailed(f"no server answers at {self._address.url}: {_reason(error)}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise CommandFailed(f"{self._address.url} does not answer like an Asterism server: {error}") from None


def _refusal(refused: urllib.error.HTTPError) -> Refused:
    if refused.code == 401:
        return Refused(KEY_REFUSED, {})
    try:
        reply = json.loads(refused.read())
        return Refused(str(reply["message"]), reply)
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return Refused(f"the server answered {refused.code} {refused.reason}", {})


def _reason(error: urllib.error.URLError) -> str:
    reason = error.reason
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({reason.verify_message}); --insecure accepts it"
    return str(getattr(reason, "strerror", None) or reason)
