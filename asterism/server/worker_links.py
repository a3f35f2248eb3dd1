"""Questions between the workers of one server, over sockets in a directory that only its user can open.

The parent makes the listening sockets before it forks and keeps them: a question to a worker that has just ended waits
for the one that takes its place, which answers that it knows nothing of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from asterism.apis.process_group import Answering, ProcessUnreachable

LOG = logging.getLogger("asterism.server")

_BACKLOG = 1024
_RANDOM_BYTES = 12
# Longer than any door lets a command wait for news.
ANSWER_SECONDS_MAX = 120.0
CONNECT_SECONDS_MAX = 10.0
_IDLE_LINKS_MAX = 64
_HEAD = struct.Struct(">IB")
# Above the largest message of any door.
_FRAME_BYTES_MAX = 256 * 1024 * 1024
_ANSWERED = 0
_FAILED = 1


@dataclass(frozen=True, slots=True)
class LinkSockets:
    """The sockets that the parent makes and every worker inherits."""

    directory: Path
    listening: Sequence[socket.socket]
    start_token: bytes

    def path(self, number: int) -> str:
        return str(self.directory / f"{number}")


def new_start_token() -> bytes:
    """Return the name of this start of the server; that of a later start is greater."""
    return int(time.time()).to_bytes(4, "big") + os.urandom(_RANDOM_BYTES)


@contextlib.contextmanager
def link_sockets(count: int) -> Iterator[LinkSockets]:
    """Make the sockets of all workers. Must be called before the first is forked."""
    with tempfile.TemporaryDirectory(prefix="asterism-", ignore_cleanup_errors=True) as made:
        directory = Path(made)
        listening: list[socket.socket] = []
        try:
            for number in range(count):
                listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                listening.append(listener)
                listener.bind(str(directory / f"{number}"))
                listener.listen(_BACKLOG)
                listener.setblocking(False)
            yield LinkSockets(directory, listening, new_start_token())
        finally:
            for listener in listening:
                listener.close()


class WorkerLinks:
    """The other workers, as one of them sees them (`apis.process_group.ProcessGroup`)."""

    def __init__(self, sockets: LinkSockets, number: int) -> None:
        self.number = number
        self.count = len(sockets.listening)
        self.start_token = sockets.start_token
        self._sockets = sockets
        self._answers: dict[str, Answering] = {}
        self._idle: dict[int, list[_Link]] = {}
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    def answer_with(self, topic: str, answer: Answering) -> None:
        self._answers[topic] = answer

    async def start(self) -> None:
        listening = self._sockets.listening[self.number].dup()
        listening.setblocking(False)
        self._server = await asyncio.start_unix_server(self._on_link, sock=listening)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for links in self._idle.values():
            for link in links:
                link.close()
        self._idle.clear()
        for task in list(self._serving):
            task.cancel()

    # --- asking -----------------------------------------------------------------------------------------------------

    async def ask(self, number: int, topic: str, question: bytes) -> bytes:
        name = topic.encode()
        framed = bytes([len(name)]) + name + question
        while True:
            link, is_fresh = await self._link(number)
            try:
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    kind, answer = await link.exchange(framed)
            except TimeoutError:
                link.close()
                raise ProcessUnreachable(number) from None
            except (OSError, EOFError):
                link.close()
                if is_fresh:
                    raise ProcessUnreachable(number) from None
                # The worker has ended, and what it kept with it: the one in its place is asked.
                continue
            except BaseException:
                # The answer would be taken for that of the next question.
                link.close()
                raise
            self._keep(number, link)
            if kind == _FAILED:
                raise ProcessUnreachable(number)
            return answer

    async def _link(self, number: int) -> tuple[_Link, bool]:
        idle = self._idle.get(number)
        while idle:
            link = idle.pop()
            if link.is_alive:
                return link, False
            link.close()
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                streams = await asyncio.open_unix_connection(self._sockets.path(number), limit=2**20)
        except (OSError, TimeoutError):
            raise ProcessUnreachable(number) from None
        return _Link(*streams), True

    def _keep(self, number: int, link: _Link) -> None:
        idle = self._idle.setdefault(number, [])
        if len(idle) < _IDLE_LINKS_MAX:
            idle.append(link)
        else:
            link.close()

    # --- answering --------------------------------------------------------------------------------------------------

    async def _on_link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "the event loop serves every link in a task"
        self._serving.add(task)
        link = _Link(reader, writer)
        try:
            while True:
                _, framed = await link.receive()
                length = framed[0]
                topic, question = framed[1 : 1 + length].decode(), framed[1 + length :]
                answer = self._answers.get(topic)
                if answer is None:
                    await link.send(_FAILED, b"")
                    continue
                try:
                    found = await answer(question)
                except Exception:
                    LOG.exception("a question of another worker about %s failed", topic)
                    await link.send(_FAILED, b"")
                else:
                    await link.send(_ANSWERED, found)
        except (OSError, EOFError, asyncio.CancelledError):
            # The asking worker has ended, or this one ends.
            pass
        finally:
            self._serving.discard(task)
            link.close()


class _Link:
    """A connection between two workers: one question at a time."""

    __slots__ = ("_reader", "_writer")

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def is_alive(self) -> bool:
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def exchange(self, framed: bytes) -> tuple[int, bytes]:
        await self.send(_ANSWERED, framed)
        return await self.receive()

    async def send(self, kind: int, payload: bytes) -> None:
        self._writer.write(_HEAD.pack(len(payload), kind) + payload)
        await self._writer.drain()

    async def receive(self) -> tuple[int, bytes]:
        length, kind = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
        if length > _FRAME_BYTES_MAX:
            raise EOFError
        return kind, await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()
