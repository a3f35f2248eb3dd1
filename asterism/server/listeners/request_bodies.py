"""Bodies of requests: read when a door asks for them, in bounded memory and time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from granian._granian import RSGIProtocolClosed as ProtocolClosed

from asterism.apis.transports.http import BodyRefused, ClientGone, Headers
from asterism.limits import KIB, MIB, Limits

# Shorter bodies are taken from the HTTP server in one call, which costs a fifth of reading piece by piece. Over HTTP/2
# a client chooses how small the pieces are, and each costs memory beyond its bytes until the body is whole.
_WHOLE_BYTES_MAX = MIB
_WHOLE_BYTES_MAX_HTTP2 = 64 * KIB
# A piece costs about 30 microseconds whatever its size: clients send pieces of kilobytes, and a few small ones.
_PIECES_MIN = 4096
_PIECE_BYTES_MEAN_MIN = 512
# Bodies up to this size may use the last quarter of the bytes in flight, so that large ones never keep them out.
_SMALL_BYTES_MAX = 64 * KIB
# Bytes of a refused body that are still received and dropped, so that its sender gets to read the refusal.
_DROPPED_BYTES_MAX = 16 * MIB
_DROP_SECONDS_MAX = 5.0
_ANSWER_SECONDS = 0.1
# A streamed body may take its time again for each of these: at the default limits a client needs 55 KB/s.
_PACED_BYTES = 16 * MIB


class BodyBudget:
    """The bytes of all bodies in flight: taken before a body is read, given back when its request is answered."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._large_bytes_max = bytes_max * 3 // 4
        self.used_bytes = 0
        self._peak_bytes = 0
        # Messages that wait for room, the first come first.
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    def take(self, size: int, *, is_small: bool) -> bool:
        """Count `size` bytes, or return False; a body on its own is always admitted."""
        used = self.used_bytes + size
        if used > (self._bytes_max if is_small else self._large_bytes_max) and self.used_bytes:
            return False
        self.used_bytes = used
        if used > self._peak_bytes:
            self._peak_bytes = used
        return True

    async def wait_to_take(self, size: int) -> None:
        """Count `size` bytes as soon as there is room, for protocols that have no way to ask a client to come back."""
        if not self._waiters and self.take(size, is_small=False):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((size, waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._waiters.remove((size, waiter))
            else:
                self.give_back(size)
            raise

    def take_piece(self, size: int) -> None:
        """Count a piece of a streamed body, which is in memory already, whether there is room or not."""
        self.used_bytes += size
        self._peak_bytes = max(self._peak_bytes, self.used_bytes)

    def has_room(self) -> bool:
        return self.used_bytes < self._large_bytes_max

    def had_a_peak(self) -> bool:
        """Tell whether much was in flight since the last call: a quarter of the limit."""
        had_a_peak = self._peak_bytes * 4 > self._bytes_max
        self._peak_bytes = self.used_bytes
        return had_a_peak

    def give_back(self, size: int) -> None:
        self.used_bytes -= size
        while self._waiters and self.take(self._waiters[0][0], is_small=False):
            _, waiter = self._waiters.popleft()
            waiter.set_result(None)


class BodyDeadlines:
    """Ends the wait for bodies that do not arrive. One timer for all of them, and only while there are any: a timer
    for each request costs more than reading its body."""

    def __init__(self, *, pause_seconds_max: float, seconds_max: float) -> None:
        self._pause_seconds_max = pause_seconds_max
        self._seconds_max = seconds_max
        # When the body was first waited for, and from when on the wait for the next piece counts.
        self._waiting: dict[asyncio.Task[Any], tuple[float, float]] = {}
        self._given_up: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def wait_for(self, piece: Awaitable[bytes], *, since: float | None = None) -> bytes:
        """Await a piece of a body whose first piece was waited for at `since`; BodyRefused when it comes too late.

        Without `since` it is the whole of a short body, and has twice the time of a piece.
        """
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._waiting[task] = (now, now + self._pause_seconds_max) if since is None else (since, now)
        if self._timer is None:
            self._timer = loop.call_later(self._pause_seconds_max / 4, self._look)
        try:
            return await piece
        except asyncio.CancelledError:
            if task not in self._given_up:
                raise
            self._given_up.discard(task)
            task.uncancel()
            raise BodyRefused(408, "RequestTimeout", "The body of the request did not arrive in time.") from None
        finally:
            del self._waiting[task]

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for task, (since, last) in self._waiting.items():
            if now - last >= self._pause_seconds_max or now - since >= self._seconds_max:
                self._given_up.add(task)
                task.cancel()
        self._timer = loop.call_later(self._pause_seconds_max / 4, self._look) if self._waiting else None


class BodyReader:
    """The limits that hold for the bodies of a port. Ports share the budget and the deadlines."""

    def __init__(
        self,
        budget: BodyBudget,
        deadlines: BodyDeadlines,
        *,
        bytes_max: int,
        streamed_bytes_max: int | None = None,
    ) -> None:
        self.budget = budget
        self.deadlines = deadlines
        # Of a body that is read whole, and of one that is read piece by piece, where a route has no limit of its own.
        self.bytes_max = bytes_max
        self.streamed_bytes_max = streamed_bytes_max or bytes_max
        # No route of the port reads more than this.
        self.announced_bytes_max = max(self.bytes_max, self.streamed_bytes_max)

    @classmethod
    def of(cls, limits: Limits) -> BodyReader:
        deadlines = BodyDeadlines(pause_seconds_max=limits.body_pause_seconds_max, seconds_max=limits.body_seconds_max)
        return cls(BodyBudget(limits.body_bytes_in_flight_max), deadlines, bytes_max=limits.request_bytes_max)

    def with_limits(self, *, bytes_max: int, streamed_bytes_max: int | None = None) -> BodyReader:
        return BodyReader(self.budget, self.deadlines, bytes_max=bytes_max, streamed_bytes_max=streamed_bytes_max)


class IncomingBody:
    """The body of one request: `RequestBody` for doors. `close` must follow, read or not."""

    __slots__ = (
        "_announced_bytes",
        "_headers",
        "_http_version",
        "_pieces",
        "_protocol",
        "_reading",
        "_taken_bytes",
        "_was_begun",
        "is_whole",
    )

    def __init__(self, reading: BodyReader, protocol: Any, headers: Headers, http_version: str) -> None:
        self._reading = reading
        self._protocol = protocol
        self._headers = headers
        self._http_version = http_version
        self._taken_bytes = 0
        announced = headers.get("content-length")
        # Only digits get here: the HTTP server refuses any other length itself.
        self._announced_bytes = None if announced is None else int(announced)
        self._was_begun = False
        # Set while a body is read piece by piece, and the next piece is not being waited for.
        self._pieces: AsyncIterator[bytes] | None = None
        self.is_whole = False

    def check_length(self) -> None:
        """Raise BodyRefused when the body is announced as larger than any route of the port takes."""
        if self._announced_bytes is not None and self._announced_bytes > self._reading.announced_bytes_max:
            raise _too_large(self._reading.announced_bytes_max)

    async def __call__(self, bytes_max: int | None = None) -> bytes:
        """Return the body; BodyRefused when it is too large or too slow, ClientGone when it will never be whole."""
        limit = self._reading.bytes_max if bytes_max is None else bytes_max
        size = self._announced_bytes
        if size is not None:
            if size > limit:
                raise _too_large(limit)
            self._take(size, is_small=size <= _SMALL_BYTES_MAX)
        self._was_begun = True
        try:
            if size is not None and size <= (
                _WHOLE_BYTES_MAX if self._http_version.startswith("1") else _WHOLE_BYTES_MAX_HTTP2
            ):
                body = await self._reading.deadlines.wait_for(self._protocol())
            else:
                body = await self._collect(limit)
        except ProtocolClosed:
            raise ClientGone from None
        self.is_whole = True
        return body

    async def chunks(self, bytes_max: int | None = None) -> AsyncIterator[bytes]:
        """Yield the body piece by piece. Only the piece that is being worked on counts among the bytes in flight."""
        limit = self._reading.streamed_bytes_max if bytes_max is None else bytes_max
        if self._announced_bytes is not None and self._announced_bytes > limit:
            raise _too_large(limit)
        budget = self._reading.budget
        if not budget.has_room():
            raise _no_room()
        self._was_begun = True
        try:
            async for piece in self._read_pieces(limit, is_paced=True):
                budget.take_piece(len(piece))
                try:
                    yield piece
                finally:
                    budget.give_back(len(piece))
        except ProtocolClosed:
            raise ClientGone from None
        self.is_whole = True

    def close(self) -> None:
        self._reading.budget.give_back(self._taken_bytes)
        self._taken_bytes = 0

    async def drop_rest(self) -> None:
        """Receive what is still to come of a body that was refused before it was read, and keep nothing of it.

        Otherwise the connection, or the stream of an HTTP/2 one, is reset while its client sends, and the answer is
        lost with it.
        """
        is_http1 = self._http_version.startswith("1")
        if self.is_whole or self._announced_bytes == 0:
            return
        if self._was_begun and self._pieces is None:
            # It cannot be resumed. Over HTTP/2 the answer needs a moment before the stream may end.
            await asyncio.sleep(0 if is_http1 else _ANSWER_SECONDS)
            return
        if not self._was_begun and is_http1 and "expect" in self._headers:
            return
        size = count = 0
        try:
            async with asyncio.timeout(_DROP_SECONDS_MAX):
                async for piece in self._pieces or self._protocol:
                    size += len(piece)
                    count += 1
                    if size > _DROPPED_BYTES_MAX or _are_too_small(count, size):
                        return
        except (TimeoutError, ProtocolClosed):
            return

    async def _collect(self, bytes_max: int) -> bytes:
        whole = bytearray()
        async for piece in self._read_pieces(bytes_max):
            if self._announced_bytes is None:
                self._take(len(piece), is_small=len(whole) + len(piece) <= _SMALL_BYTES_MAX)
            whole += piece
        return bytes(whole)

    async def _read_pieces(self, bytes_max: int, *, is_paced: bool = False) -> AsyncIterator[bytes]:
        """Yield pieces as they arrive, in time and up to `bytes_max` together.

        A whole body must arrive within its deadline; where `is_paced`, each share of it must, and the time that the
        caller takes for a piece does not count.
        """
        wait_for, now = self._reading.deadlines.wait_for, asyncio.get_running_loop().time
        since = now()
        size = count = empty_count = share_bytes = 0
        pieces = aiter(self._protocol)
        while True:
            try:
                piece: bytes = await wait_for(anext(pieces), since=since)
            except StopAsyncIteration:
                break
            count += 1
            size += len(piece)
            if size > bytes_max:
                raise _too_large(bytes_max)
            if _are_too_small(count, size):
                raise BodyRefused(
                    400, "BadRequest", "The body comes in too many small pieces. Send it in pieces of some kilobytes."
                )
            if not piece:
                empty_count += 1
                continue
            handed_over = now()
            self._pieces = pieces
            yield piece
            self._pieces = None
            if is_paced:
                since += now() - handed_over
                share_bytes += len(piece)
                if share_bytes >= _PACED_BYTES:
                    since, share_bytes = now(), 0
        if self._is_cut_short(size, empty_count):
            raise ClientGone

    def _is_cut_short(self, size: int, empty_count: int) -> bool:
        """Tell whether the connection ended before the body did.

        The HTTP server says so with an empty piece more than the last one; over HTTP/2 there may be others, and there
        it ends the stream instead.
        """
        if self._announced_bytes is not None:
            return size < self._announced_bytes
        return empty_count > 1 and self._http_version.startswith("1")

    def _take(self, size: int, *, is_small: bool) -> None:
        if not self._reading.budget.take(size, is_small=is_small):
            raise _no_room()
        self._taken_bytes += size


def _are_too_small(count: int, size: int) -> bool:
    return count > _PIECES_MIN and size < count * _PIECE_BYTES_MEAN_MIN


def _no_room() -> BodyRefused:
    return BodyRefused(
        429,
        "TooManyRequests",
        "The server is receiving as many bytes of request bodies as it may hold. Retry after a second, or "
        "raise the limit body-bytes-in-flight.",
        retry_after_seconds=1,
    )


def _too_large(bytes_max: int) -> BodyRefused:
    return BodyRefused(
        413,
        "RequestEntityTooLarge",
        # Clients of bulk requests look for the first sentence.
        'Message: {"Errors":["Request size is too large"]} '
        f"The size of the request exceeds the maximum allowed size of {bytes_max} bytes.",
    )
