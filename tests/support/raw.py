"""Requests as bytes on a socket, for clients that do what libraries do not allow."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from urllib.parse import quote

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.access.master_key import signature
from tests.support.server import WAIT_SECONDS_MAX

HTTP2_START = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HTTP2_PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + bytes(8)


def http2_post(path: str, *, content_length: int, start: bytes) -> bytes:
    """Return a connection's first request, with the start of its body; header names by their HPACK numbers."""
    length = str(content_length).encode()
    head = b"\x83\x86\x04%c%b\x01\x09localhost\x0f\x0d%c%b" % (len(path), path.encode(), len(length), length)
    return HTTP2_START + http2_frame(1, 4, head) + http2_frame(0, 0, start)


def http2_frame(kind: int, flags: int, payload: bytes) -> bytes:
    """Return a frame of the connection's first request."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + (1).to_bytes(4, "big") + payload


def http2_frames(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield kind and payload of each frame of the connection's first request (0 data, 1 head, 3 reset), up to the
    answer to a ping."""
    reader = connection.makefile("rb")
    while header := reader.read(9):
        payload = reader.read(int.from_bytes(header[:3], "big"))
        if header[3] == 6:
            return
        if header[5:] == (1).to_bytes(4, "big"):
            yield header[3], payload


def connect(port: int, *, receive_bytes: int | None = None, host: str = "127.0.0.1") -> socket.socket:
    """Connect; with a small receive buffer, the connection buffers hardly more than that of an unread answer."""
    connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if receive_bytes is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.settimeout(WAIT_SECONDS_MAX)
    connection.connect((host, port))
    return connection


def connect_tls(port: int, *protocols: str) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    return context.wrap_socket(connect(port), server_hostname="localhost")


def head(
    verb: str, path: str, *, resource_type: str, link: str, signed: bool = True, host: str = "localhost", **more: str
) -> bytes:
    """Return the head of a request for the NoSQL door; `more` are headers, with underscores for hyphens."""
    date = formatdate(usegmt=True)
    key = base64.b64decode(WELL_KNOWN_EMULATOR_KEY) if signed else b"another key"
    text = signature(key, verb=verb, resource_type=resource_type, link=link, date=date)
    headers = {
        "host": host,
        "x-ms-date": date,
        "x-ms-version": "2020-07-15",
        "authorization": quote(f"type=master&ver=1.0&sig={text}", safe=""),
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def create_item(container: str, size: int | None, *, signed: bool = True, key: str = "a") -> bytes:
    """Return the head of a request that creates an item in the database `d`; without a size, its body is chunked."""
    link = f"dbs/d/colls/{container}"
    length = {"transfer_encoding": "chunked"} if size is None else {"content_length": str(size)}
    more = {"x_ms_documentdb_partitionkey": f'["{key}"]', "content_type": "application/json", **length}
    return head("POST", f"/{link}/docs", resource_type="docs", link=link, signed=signed, **more)


def status_of(connection: socket.socket) -> int:
    """Return the status of the next answer on a connection."""
    received = b""
    while b"\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            raise AssertionError(f"the connection was closed after {received!r}")
        received += piece
    return int(received.split(b" ", 2)[1])


def answer_of(connection: socket.socket) -> bytes:
    """Return the next answer with its body, which may arrive behind its head; less if the connection ends before."""
    received = b""
    while not _is_whole(received) and (piece := connection.recv(65536)):
        received += piece
    return received


def _is_whole(received: bytes) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head.lower())
    return bool(end) and (length is None or len(body) >= int(length[1]))


def was_closed(connection: socket.socket) -> bool:
    """Wait until the server closes a connection, and discard the data it still sends; False after the timeout."""
    try:
        while connection.recv(1 << 20):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def rest_of(connection: socket.socket) -> bytes:
    """Return all that the server sends until it closes a connection."""
    received = b""
    while piece := connection.recv(1 << 20):
        received += piece
    return received


def wait_until(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if is_so():
                return True
        time.sleep(0.05)
    return False
