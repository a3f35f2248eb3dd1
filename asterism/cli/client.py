"""The commands' way to a running server: the admin door over HTTP, with nothing but the standard library."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import ssl
import urllib.error
import urllib.request
from email.utils import formatdate
from http.client import HTTPException
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from asterism.access.master_key import signature
from asterism.cli.failure import CommandFailed

TIMEOUT_SECONDS = 30.0

Json = dict[str, Any]


class Refused(CommandFailed):
    """The server says no; `told` is all it says."""

    def __init__(self, text: str, told: Json) -> None:
        super().__init__(text)
        self.told = told


class AdminClient:
    """Signs and sends; everything that goes wrong is a CommandFailed."""

    def __init__(self, endpoint: str, key: str, *, insecure: bool) -> None:
        self._endpoint = endpoint.rstrip("/")
        host = urlsplit(self._endpoint).hostname
        if urlsplit(self._endpoint).scheme not in ("http", "https") or not host:
            raise CommandFailed(f"the endpoint {endpoint!r} is not a URL such as http://127.0.0.1:8081")
        try:
            self._key_bytes = base64.b64decode(key.strip(), validate=True)
        except (binascii.Error, ValueError):
            raise CommandFailed("the key is not base64 text") from None
        local = _is_loopback(host)
        handlers: list[urllib.request.BaseHandler] = []
        if insecure or local:
            # A server on this machine has a certificate that it made itself.
            handlers.append(urllib.request.HTTPSHandler(context=ssl._create_unverified_context()))
        if local:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, name: str, **parameters: str) -> Json:
        return self._ask("GET", name, parameters=parameters)

    def post(self, name: str, body: Json) -> Json:
        return self._ask("POST", name, body=body)

    def _ask(self, verb: str, name: str, *, parameters: dict[str, str] | None = None, body: Json | None = None) -> Json:
        link = f"_asterism/{name}"
        query = f"?{urlencode(parameters)}" if parameters else ""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self._endpoint}/{link}{query}", data=data, method=verb, headers=self._signed_headers(verb, link)
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                return cast(Json, json.load(response))
        except urllib.error.HTTPError as refused:
            raise _refusal(refused) from None
        except urllib.error.URLError as error:
            raise CommandFailed(f"no server answers at {self._endpoint}: {_reason(error)}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise CommandFailed(f"{self._endpoint} does not answer as Asterism does: {error}") from None

    def _signed_headers(self, verb: str, link: str) -> dict[str, str]:
        date = formatdate(usegmt=True)
        signed = signature(self._key_bytes, verb=verb, resource_type="asterism", link=link, date=date)
        token = quote(f"type=master&ver=1.0&sig={signed}", safe="")
        return {"authorization": token, "x-ms-date": date, "content-type": "application/json"}


def _refusal(refused: urllib.error.HTTPError) -> Refused:
    if refused.code == 401:
        return Refused("the server does not accept the key; give the server's own with --key or ASTERISM_KEY", {})
    try:
        told = json.loads(refused.read())
        return Refused(str(told["message"]), told)
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return Refused(f"the server answered {refused.code} {refused.reason}", {})


def _reason(error: urllib.error.URLError) -> str:
    reason = error.reason
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({reason.verify_message}); --insecure accepts it"
    return str(getattr(reason, "strerror", None) or reason)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
