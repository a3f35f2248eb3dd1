"""The server that a command talks to: its address, its certificate, and the key for its requests."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import ssl
from dataclasses import dataclass
from email.utils import formatdate
from urllib.parse import quote, urlsplit

from asterism.access.master_key import signature
from asterism.cli.failure import CommandFailed

KEY_REFUSED = "the server does not accept the key; give the server's own key with --key or ASTERISM_KEY"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    url: str
    scheme: str
    host: str
    port: int | None
    key_bytes: bytes
    insecure: bool

    @classmethod
    def of(cls, endpoint: str, key: str, *, insecure: bool) -> ServerAddress:
        url = endpoint.rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandFailed(f"the endpoint {endpoint!r} is not a URL such as http://127.0.0.1:8081")
        try:
            key_bytes = base64.b64decode(key.strip(), validate=True)
        except (binascii.Error, ValueError):
            raise CommandFailed("the key is not base64 text") from None
        return cls(url, parts.scheme, parts.hostname, parts.port, key_bytes, insecure)

    @property
    def is_local(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")

    def tls(self) -> ssl.SSLContext:
        # A server on this machine has a self-signed certificate.
        is_lenient = self.insecure or self.is_local
        return ssl._create_unverified_context() if is_lenient else ssl.create_default_context()

    def signed_headers(self, verb: str, *, resource_type: str, link: str) -> dict[str, str]:
        date = formatdate(usegmt=True)
        signed = signature(self.key_bytes, verb=verb, resource_type=resource_type, link=link, date=date)
        token = quote(f"type=master&ver=1.0&sig={signed}", safe="")
        return {"authorization": token, "x-ms-date": date, "content-type": "application/json"}
