"""Client of a running server's ports for queues and blobs: signed with a key of the storage account, over a kept
connection, with the standard library alone."""

from __future__ import annotations

import base64
import binascii
import http.client
import re
import ssl
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote, urlencode

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.access.shared_key_headers import sign_headers
from asterism.cli.failure import CommandFailed
from asterism.cli.server_address import ServerAddress

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient

Service = Literal["queue", "blob"]

TIMEOUT_SECONDS: Final = 60.0
_VERSION: Final = "2026-10-06"
_ERRORS: Final = 400
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


class StorageRefused(CommandFailed):
    """A refusal by the server, with its code."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class StorageReply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def xml(self) -> ElementTree.Element:
        try:
            return ElementTree.fromstring(self.body)
        except ElementTree.ParseError:
            raise CommandFailed("the server's answer is not XML") from None


class StorageClient:
    """Client for one thread. Every failure is a CommandFailed; refusals by the server are StorageRefused."""

    def __init__(
        self,
        admin: AdminClient,
        endpoint: str,
        key: str,
        *,
        service: Service,
        account: str,
        account_key: str | None,
        insecure: bool,
    ) -> None:
        """The port of the service is the server's own, on the host of `endpoint`."""
        address = ServerAddress.of(endpoint, key, insecure=insecure)
        place = admin.get("server").get("storage", {}).get(service)
        if place is None:
            raise CommandFailed(f"the server has no port for {service}s; start it with --apis nosql,{service}")
        self.account = account
        self._key = _decoded(account_key or _known_key(admin, account))
        self._where = f"{address.host}:{place['port']}"
        self._connection: http.client.HTTPConnection
        if place["is_encrypted"]:
            self._connection = http.client.HTTPSConnection(
                address.host, place["port"], timeout=TIMEOUT_SECONDS, context=address.tls()
            )
        else:
            self._connection = http.client.HTTPConnection(address.host, place["port"], timeout=TIMEOUT_SECONDS)

    def close(self) -> None:
        self._connection.close()

    def ask(
        self,
        method: str,
        path: str = "",
        body: bytes = b"",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> StorageReply:
        """Send a request; `path` is behind the account, not escaped."""
        try:
            wire_path = f"/{quote(self.account, safe='')}/{quote(path)}"
            query_string = urlencode(query or {}, quote_via=quote)
        except UnicodeEncodeError:
            raise CommandFailed(f"{path!r} or the query has bytes that are not UTF-8") from None
        sent = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION, **(headers or {})}
        if body:
            sent["content-length"] = str(len(body))
        _check_headers(sent)
        sent["authorization"] = sign_headers(
            self._key, verb=method, headers=sent, account=self.account, path=wire_path, query_string=query_string
        )
        url = f"{wire_path}?{query_string}" if query_string else wire_path
        try:
            self._connection.request(method, url, body or None, sent)
            response = self._connection.getresponse()
            reply = StorageReply(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        except ssl.SSLCertVerificationError as error:
            raise CommandFailed(
                f"the certificate of {self._where} is not trusted ({error.verify_message}); --insecure accepts it"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise CommandFailed(f"the port {self._where} does not answer: {error or type(error).__name__}") from None
        if reply.status >= _ERRORS:
            raise _refusal(reply)
        return reply


def text_in(element: ElementTree.Element, name: str) -> str:
    """Return the text of a child of an element; empty if it has none."""
    found = element.find(name)
    return "" if found is None else found.text or ""


def metadata_headers(given: Iterable[str]) -> dict[str, str]:
    """Return the headers of metadata given as NAME=VALUE."""
    headers: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise CommandFailed(f"the metadata {text!r} have no value; write NAME=VALUE")
        headers[f"x-ms-meta-{name.strip().lower()}"] = value.strip()
    return headers


def _known_key(admin: AdminClient, account: str) -> str:
    if account == DEVELOPMENT_ACCOUNT:
        return DEVELOPMENT_KEY
    try:
        return str(admin.post("accounts/keys", {"name": account})["keys"]["primary"])
    except CommandFailed as failure:
        raise CommandFailed(f"the key of the account {account} is unknown: {failure}; give --account-key") from None


def _decoded(key: str) -> bytes:
    try:
        return base64.b64decode(key.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise CommandFailed("the key of the storage account is not base64 text") from None


def _check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that would not arrive as they are: they would change the request, or its signature."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise CommandFailed(f"{name!r} cannot be the name of a header: use ASCII letters, digits, - and _")
        if not (value.isascii() and value.isprintable()):
            raise CommandFailed(f"{value!r} cannot be the value of {name}: use printable ASCII characters")


def _input_of(error: ElementTree.Element) -> str:
    """Return the input that a refusal is about, and its permissible range, as far as the server names them."""
    name = text_in(error, "QueryParameterName") or text_in(error, "HeaderName")
    minimum, maximum = text_in(error, "MinimumAllowed"), text_in(error, "MaximumAllowed")
    permitted = f" is from {minimum} to {maximum}" if minimum and maximum else ""
    return f" ({name}{permitted})" if name else ""


def _refusal(reply: StorageReply) -> StorageRefused:
    code = reply.headers.get("x-ms-error-code", "")
    try:
        error = ElementTree.fromstring(reply.body)
        message = text_in(error, "Message").partition("\n")[0] + _input_of(error)
    except ElementTree.ParseError:
        message = ""
    if code == "AuthenticationFailed":
        message = "the server does not accept the key of the storage account; give its own with --account-key"
    return StorageRefused(reply.status, code, message or f"the server answered {reply.status} {code}")
