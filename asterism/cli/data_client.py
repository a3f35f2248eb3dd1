"""The commands' way to a running server's data: the NoSQL door over a kept connection, signed with the key."""

from __future__ import annotations

import base64
import binascii
import http.client
import ipaddress
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, cast
from urllib.parse import quote, urlsplit

from asterism.access.master_key import signature
from asterism.cli.failure import CommandFailed
from asterism.errors import AsterismError
from asterism.values.json_text import dumps, loads

TIMEOUT_SECONDS = 60.0
# A partition that has spent its request units is asked again for so long.
THROTTLED_SECONDS_MAX = 120.0
_RETRY_AFTER_MS_DEFAULT = 100

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def message(self) -> str:
        told = self.body.get("message") if isinstance(self.body, dict) else None
        return str(told) if told else f"the server answered {self.status}"


class DataClient:
    """For one thread. What the network does wrong is a CommandFailed; what the server refuses is an Answer."""

    def __init__(self, endpoint: str, key: str, *, insecure: bool) -> None:
        self._endpoint = endpoint.rstrip("/")
        parts = urlsplit(self._endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandFailed(f"the endpoint {endpoint!r} is not a URL such as http://127.0.0.1:8081")
        try:
            self._key_bytes = base64.b64decode(key.strip(), validate=True)
        except (binascii.Error, ValueError):
            raise CommandFailed("the key is not base64 text") from None
        if parts.scheme == "https":
            # A server on this machine has a certificate that it made itself.
            lenient = insecure or _is_loopback(parts.hostname)
            context = ssl._create_unverified_context() if lenient else ssl.create_default_context()
            self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_SECONDS, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)

    def close(self) -> None:
        self._connection.close()

    def ask(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        type_: str,
        link: str,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request, repeated while the server says that the throughput is spent. `path` and `link` are by names,
        not escaped."""
        give_up_at = time.monotonic() + THROTTLED_SECONDS_MAX
        while True:
            answer = self._send(verb, path, body, type_=type_, link=link, headers=headers or {})
            if answer.status == 401:
                raise CommandFailed(
                    "the server does not accept the key; give the server's own with --key or ASTERISM_KEY"
                )
            if answer.status != 429 or time.monotonic() > give_up_at:
                return answer
            time.sleep(int(answer.headers.get("x-ms-retry-after-ms", _RETRY_AFTER_MS_DEFAULT)) / 1000)

    def need(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        type_: str,
        link: str,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """As `ask`, and a refusal is a failure of the command."""
        answer = self.ask(verb, path, body, type_=type_, link=link, headers=headers)
        if answer.status >= 400:
            raise CommandFailed(answer.message)
        return answer

    def feed(self, path: str, envelope: str, *, type_: str, link: str, page_items: int) -> Iterator[list[Json]]:
        """The pages of a feed."""
        for answer in self.pages(path, type_=type_, link=link, headers={"x-ms-max-item-count": str(page_items)}):
            yield cast("list[Json]", answer.body[envelope])

    def pages(self, path: str, *, type_: str, link: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        continuation: str | None = None
        while True:
            more = {} if continuation is None else {"x-ms-continuation": continuation}
            answer = self.need("GET", path, type_=type_, link=link, headers={**headers, **more})
            yield answer
            continuation = answer.headers.get("x-ms-continuation")
            if not continuation:
                return

    def _send(self, verb: str, path: str, body: object, *, type_: str, link: str, headers: Mapping[str, str]) -> Answer:
        date = formatdate(usegmt=True)
        signed = signature(self._key_bytes, verb=verb, resource_type=type_, link=link, date=date)
        sent = {
            "authorization": quote(f"type=master&ver=1.0&sig={signed}", safe=""),
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "content-type": "application/json",
            **headers,
        }
        content = None if body is None else body if isinstance(body, bytes) else dumps(body)
        try:
            self._connection.request(verb, quote(f"/{path}"), content, sent)
            response = self._connection.getresponse()
            text = response.read()
        except ssl.SSLCertVerificationError as error:
            raise CommandFailed(
                f"the certificate of {self._endpoint} is not trusted ({error.verify_message}); --insecure accepts it"
            ) from None
        except ConnectionRefusedError as error:
            raise CommandFailed(f"no server answers at {self._endpoint}: {error.strerror}") from None
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise CommandFailed(f"the connection to {self._endpoint} broke: {error or type(error).__name__}") from None
        lowered = {name.lower(): value for name, value in response.getheaders()}
        try:
            return Answer(response.status, lowered, loads(text) if text else None)
        except AsterismError:
            raise CommandFailed(f"{self._endpoint} does not answer as Asterism does") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
