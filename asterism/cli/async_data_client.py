"""Client of a running server's data for commands that send many requests at once: the NoSQL door over kept connections,
from one event loop. It never retries: its caller sees every reply, also a throttled one."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote

from asterism.cli.data_client import TIMEOUT_SECONDS, DataReply
from asterism.cli.failure import CommandFailed
from asterism.cli.server_address import KEY_REFUSED, ServerAddress
from asterism.errors import AsterismError
from asterism.values.json.text import dumps, loads

# A signature covers verb, type, link and date, and servers accept one that is some minutes old. Signing takes longer
# than everything else that is done for a request.
_SIGNATURE_SECONDS_MAX: Final = 120.0
_SIGNATURES_MAX: Final = 20_000
_HEAD_BYTES_MAX: Final = 256 * 1024

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncDataClient:
    """Client for one event loop, with at most so many requests under way."""

    def __init__(self, address: ServerAddress, *, connections: int) -> None:
        self._address = address
        # None stands for a connection that is still to be made.
        self._free: asyncio.LifoQueue[Connection | None] = asyncio.LifoQueue()
        for _ in range(connections):
            self._free.put_nowait(None)
        self._signed: dict[tuple[str, str, str], tuple[float, str]] = {}

    async def close(self) -> None:
        while not self._free.empty():
            connection = self._free.get_nowait()
            if connection is not None:
                connection[1].close()

    async def ask(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        type_: str,
        link: str,
        headers: Mapping[str, str] | None = None,
    ) -> DataReply:
        """Send a request. `path` and `link` are by names, not escaped. A failure of the network, or a refused key, is a
        CommandFailed; any other refusal is a reply."""
        content = b"" if body is None else dumps(body)
        signed = self._signed_lines(verb, type_, link)
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = f"{verb} {quote(f'/{path}')} HTTP/1.1\r\n{signed}{lines}content-length: {len(content)}\r\n\r\n"
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._connection() as connection:
                connection[1].write(head.encode("latin-1") + content)
                reply = await _read_reply(connection[0])
        except ssl.SSLCertVerificationError as error:
            reason = f"is not trusted ({error.verify_message}); --insecure accepts it"
            raise CommandFailed(f"the certificate of {self._address.url} {reason}") from None
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, AsterismError) as error:
            reason = str(error) or type(error).__name__
            raise CommandFailed(f"the connection to {self._address.url} broke: {reason}") from None
        if reply.status == 401:
            raise CommandFailed(KEY_REFUSED)
        return reply

    def _signed_lines(self, verb: str, type_: str, link: str) -> str:
        """Return the header lines that depend on the resource alone."""
        known, now = self._signed.get((verb, type_, link)), time.monotonic()
        if known is not None and now - known[0] < _SIGNATURE_SECONDS_MAX:
            return known[1]
        if len(self._signed) >= _SIGNATURES_MAX:
            self._signed.clear()
        fields = self._address.signed_headers(verb, resource_type=type_, link=link)
        fields |= {"host": self._address.host, "x-ms-version": "2020-07-15", "accept": "application/json"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._signed[verb, type_, link] = (now, lines)
        return lines

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """Wait for a free connection. One whose request failed in between is closed: its reply may still come."""
        connection = await self._free.get()
        try:
            if connection is None:
                connection = await self._connect()
            yield connection
        except BaseException:
            if connection is not None:
                connection[1].close()
            self._free.put_nowait(None)
            raise
        self._free.put_nowait(connection)

    async def _connect(self) -> Connection:
        address = self._address
        is_secure = address.scheme == "https"
        port = address.port or (443 if is_secure else 80)
        tls = address.tls() if is_secure else None
        return await asyncio.open_connection(address.host, port, ssl=tls, limit=_HEAD_BYTES_MAX)


async def _read_reply(reader: asyncio.StreamReader) -> DataReply:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first.split(" ", 2)[1])
    text = await _read_body(reader, status, headers)
    return DataReply(status, headers, loads(text) if text else None)


async def _read_body(reader: asyncio.StreamReader, status: int, headers: Mapping[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", ""):
        chunks = []
        while length := int(await reader.readuntil(b"\r\n"), 16):
            chunks.append(await reader.readexactly(length))
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return b"".join(chunks)
    if status in (204, 304):
        return b""
    return await reader.readexactly(int(headers["content-length"]))
