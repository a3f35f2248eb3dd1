"""TLS for the event loop's own connections: the context, and the name that a client asked for."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    certificate: Path
    private_key: Path


class NamedTlsObject(ssl.SSLObject):
    """The TLS side of a connection, which remembers the host that its client named (SNI)."""

    server_name: str | None = None


def server_name_of(tls_object: ssl.SSLObject) -> str | None:
    return tls_object.server_name if isinstance(tls_object, NamedTlsObject) else None


def server_context(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Some runtimes that official clients still support do not speak 1.3.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.private_key)
    # The only version of HTTP that these ports speak; clients of other protocols do not ask.
    context.set_alpn_protocols(["http/1.1"])
    context.sslobject_class = NamedTlsObject
    context.sni_callback = _remember_name
    return context


def _remember_name(tls_object: ssl.SSLObject, server_name: str | None, _: ssl.SSLContext) -> None:
    if isinstance(tls_object, NamedTlsObject):
        tls_object.server_name = server_name
