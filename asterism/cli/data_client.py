"""Client of a running server's data for the commands: the NoSQL door over a kept connection, signed with the key."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from asterism.cli.failure import CommandFailed
from asterism.cli.server_address import KEY_REFUSED, ServerAddress
from asterism.errors import AsterismError
from asterism.values.json.text import dumps, loads

TIMEOUT_SECONDS = 60.0
# Requests to a partition that has spent its request units are retried for this long.
THROTTLED_SECONDS_MAX = 120.0
_RETRY_AFTER_MS_DEFAULT = 100


@dataclass(frozen=True, slots=True)
class DataReply:
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def message(self) -> str:
        message = self.body.get("message") if isinstance(self.body, dict) else None
        return str(message) if message else f"the server answered {self.status}"


class DataClient:
    """Client for one thread. A failure of the network is a CommandFailed; a refusal by the server is an DataReply."""

    def __init__(self, endpoint: str, key: str, *, insecure: bool) -> None:
        self._address = address = ServerAddress.of(endpoint, key, insecure=insecure)
        if address.scheme == "https":
            self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                address.host, address.port, timeout=TIMEOUT_SECONDS, context=address.tls()
            )
        else:
            self._connection = http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_SECONDS)

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
    ) -> DataReply:
        """Send a request, and retry while the server throttles it. `path` and `link` are by names, not escaped."""
        give_up_at = time.monotonic() + THROTTLED_SECONDS_MAX
        while True:
            answer = self.ask_once(verb, path, body, type_=type_, link=link, headers=headers)
            if answer.status != 429 or time.monotonic() > give_up_at:
                return answer
            time.sleep(int(answer.headers.get("x-ms-retry-after-ms", _RETRY_AFTER_MS_DEFAULT)) / 1000)

    def ask_once(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        type_: str,
        link: str,
        headers: Mapping[str, str] | None = None,
    ) -> DataReply:
        """Send a request like `ask`, but return a throttled one as it is."""
        answer = self._send(verb, path, body, type_=type_, link=link, headers=headers or {})
        if answer.status == 401:
            raise CommandFailed(KEY_REFUSED)
        return answer

    def need(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        type_: str,
        link: str,
        headers: Mapping[str, str] | None = None,
    ) -> DataReply:
        """Send a request like `ask`; a refusal is a failure of the command."""
        answer = self.ask(verb, path, body, type_=type_, link=link, headers=headers)
        if answer.status >= 400:
            raise CommandFailed(answer.message)
        return answer

    def feed(
        self, path: str, envelope: str, *, type_: str, link: str, page_items: int
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield the pages of a feed."""
        for answer in self.pages(path, type_=type_, link=link, headers={"x-ms-max-item-count": str(page_items)}):
            yield cast("list[dict[str, Any]]", answer.body[envelope])

    def pages(self, path: str, *, type_: str, link: str, headers: Mapping[str, str]) -> Iterator[DataReply]:
        continuation: str | None = None
        while True:
            more = {} if continuation is None else {"x-ms-continuation": continuation}
            answer = self.need("GET", path, type_=type_, link=link, headers={**headers, **more})
            yield answer
            continuation = answer.headers.get("x-ms-continuation")
            if not continuation:
                return

    def _send(
        self, verb: str, path: str, body: object, *, type_: str, link: str, headers: Mapping[str, str]
    ) -> DataReply:
        signed = self._address.signed_headers(verb, resource_type=type_, link=link)
        sent = {**signed, "x-ms-version": "2020-07-15", **headers}
        content = None if body is None else body if isinstance(body, bytes) else dumps(body)
        try:
            self._connection.request(verb, quote(f"/{path}"), content, sent)
            response = self._connection.getresponse()
            text = response.read()
        except ssl.SSLCertVerificationError as error:
            raise CommandFailed(
                f"the certificate of {self._address.url} is not trusted ({error.verify_message}); --insecure accepts it"
            ) from None
        except ConnectionRefusedError as error:
            raise CommandFailed(f"no server answers at {self._address.url}: {error.strerror}") from None
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise CommandFailed(
                f"the connection to {self._address.url} broke: {error or type(error).__name__}"
            ) from None
        lowered = {name.lower(): value for name, value in response.getheaders()}
        try:
            return DataReply(response.status, lowered, loads(text) if text else None)
        except AsterismError:
            raise CommandFailed(f"{self._address.url} does not answer like an Asterism server") from None
