"""Captures of requests: which containers have one, and the task that writes what the recorders have taken.

The order to capture is in the container's record in the catalog, where every process finds it and where it survives a
restart; a request on a container without one pays for a look at that. Each process of a server records what it has
served itself, and all of them append to files of one data directory; a gateway of a fleet has a directory of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from typing import Final

from asterism.advisor.value_digests import SALT_BYTES
from asterism.apis.captures.files import CaptureFiles
from asterism.apis.captures.recorder import Recorder
from asterism.apis.process_group import ProcessGroup, ProcessUnreachable
from asterism.clock import Clock
from asterism.errors import AsterismError, CaptureRefused
from asterism.keyspaces.catalog.capture_order import CaptureOrder
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.routing.keyspace import Keyspace

_log = logging.getLogger(__name__)

# Records reach the disk after this long, and a crash loses no more than these. It is also how soon a process notices
# that a capture has ended.
FLUSH_SECONDS: Final = 0.5
_TOPIC: Final = "captures"
_ID_BYTES: Final = 8
_PART_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    order: CaptureOrder
    is_running: bool
    # A clause that follows "because"; empty while it runs.
    ended_because: str
    size_bytes: int


class Captures:
    """The captures as one process has them."""

    def __init__(
        self,
        catalog: Catalog,
        files: CaptureFiles,
        *,
        clock: Clock,
        random: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        processes: ProcessGroup,
    ) -> None:
        self._catalog = catalog
        self._files = files
        self._wall_seconds = clock.wall_seconds
        self._random = random
        self._random_bytes = random_bytes
        self._processes = processes
        self._part = random_bytes(_PART_BYTES).hex()
        # By resource id, with the keyspace. One that is closed stays until another order takes its place.
        self._recorders: dict[bytes, tuple[Keyspace, Recorder]] = {}
        # Reasons that could not be recorded in the catalog, by the id of the capture.
        self._unrecorded_ends: dict[str, str] = {}
        # Ids of captures whose records are to be removed.
        self._outdated: list[str] = []
        self._flushing = asyncio.Lock()
        self._flusher: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    # --- the life of the process ------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Remove the records of containers that were deleted, and answer other processes."""
        self._processes.answer_with(_TOPIC, self._answer_process)
        found = await asyncio.to_thread(self._files.capture_ids)
        # After the look at the files: whichever of them another process has just begun is then known.
        await self._catalog.follow()
        orders = [keyspace.record.capture for keyspace in self._catalog.keyspaces.values()]
        for capture_id in set(found) - {order.id for order in orders if order is not None}:
            await asyncio.to_thread(self._files.remove, capture_id)

    async def close(self) -> None:
        """Write what waits, and end."""
        self._closing.set()
        if self._flusher is not None:
            await self._flusher
        await self.flush()

    # --- for requests -----------------------------------------------------------------------------------------------

    def sample(self, keyspace: Keyspace) -> Recorder | None:
        """Return the recorder of the next request on a keyspace that has an order; None if it is not to be kept."""
        order = keyspace.record.capture
        known = self._recorders.get(keyspace.record.rid)
        recorder = known[1] if known is not None and known[1].order is order else self._recorder_of(keyspace)
        if recorder is None or not recorder.is_open or self._random() >= recorder.sampling:
            return None
        return recorder

    def _recorder_of(self, keyspace: Keyspace) -> Recorder | None:
        """Return the recorder of the order in force, made if it is a new one."""
        record = keyspace.record
        order, known = record.capture, self._recorders.get(record.rid)
        database = self._catalog.databases.get(record.database_rid)
        if order is None or database is None:
            return None
        if known is not None and known[1].order.id == order.id:
            # A change of another part of the record, or the end of the capture.
            recorder = known[1]
            recorder.order = order
        else:
            if known is not None:
                self._outdated.append(known[1].order.id)
            recorder = Recorder(order, database=database.name, container=record.name, part=self._part)
            self._recorders[record.rid] = keyspace, recorder
        if not order.is_running(now=self._wall_seconds()):
            recorder.close()
        elif self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_forever())
        return recorder

    # --- for operators ----------------------------------------------------------------------------------------------

    async def start(
        self, keyspace: Keyspace, *, sampling: float, bytes_max: int, seconds_max: float, keeps_values: bool
    ) -> None:
        """Begin a capture in place of an earlier one, whose records are removed."""
        now = self._wall_seconds()
        order = CaptureOrder(
            id=self._random_bytes(_ID_BYTES).hex(),
            started_at=now,
            ends_at=now + seconds_max,
            sampling=sampling,
            bytes_max=bytes_max,
            keeps_values=keeps_values,
            salt=self._random_bytes(SALT_BYTES),
        )

        def begin(before: CaptureOrder | None) -> CaptureOrder:
            if before is not None and before.is_running(now=now):
                raise CaptureRefused(
                    reason="A capture of this container is running. Stop it first: asterism capture stop."
                )
            return order

        earlier = keyspace.record.capture
        await self._catalog.replace_capture(keyspace, begin)
        # From here on every process of this server knows of it.
        await self.flush_everywhere()
        if earlier is not None:
            await asyncio.to_thread(self._files.remove, earlier.id)

    async def stop(self, keyspace: Keyspace) -> None:
        now = self._wall_seconds()

        def end(before: CaptureOrder | None) -> CaptureOrder:
            if before is None or not before.is_running(now=now):
                raise CaptureRefused(
                    reason="No capture of this container is running. To begin one: asterism capture start."
                )
            return replace(before, ended_because="it was stopped")

        await self._catalog.replace_capture(keyspace, end)
        await self.flush_everywhere()

    async def status(self, keyspace: Keyspace) -> CaptureStatus:
        order = self.order_of(keyspace)
        is_running = order.is_running(now=self._wall_seconds())
        because = order.ended_because or self._unrecorded_ends.get(order.id, "")
        if not is_running and not because:
            because = "its time was over"
        size_bytes = await asyncio.to_thread(self._files.size_bytes, order.id)
        return CaptureStatus(order, is_running and not because, because, size_bytes)

    def order_of(self, keyspace: Keyspace) -> CaptureOrder:
        order = keyspace.record.capture
        if order is None:
            raise CaptureRefused(
                reason=f"There is no capture of '{keyspace.record.name}'. To begin one: asterism capture start."
            )
        return order

    async def pieces(self, keyspace: Keyspace) -> AsyncGenerator[bytes]:
        """Yield the records of a capture as they are stored, in pieces of any length."""
        capture_id = self.order_of(keyspace).id
        await self.flush_everywhere()
        pieces = self._files.pieces(capture_id)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece

    # --- writing ----------------------------------------------------------------------------------------------------

    async def flush_everywhere(self) -> None:
        """Write what waits in all processes of this server, as far as they answer."""
        await self.flush()
        for number in range(self._processes.count):
            if number != self._processes.number:
                with contextlib.suppress(ProcessUnreachable):
                    await self._processes.ask(number, _TOPIC, b"")

    async def _answer_process(self, _: bytes) -> bytes:
        await self._catalog.follow()
        await self.flush()
        return b""

    async def flush(self) -> None:
        async with self._flushing:
            for rid, (keyspace, recorder) in list(self._recorders.items()):
                order = keyspace.record.capture
                if keyspace.deleted or order is None or order.id != recorder.order.id:
                    self._forget(rid, recorder, is_deleted=keyspace.deleted)
                else:
                    await self._flush(keyspace, order, recorder)
            while self._outdated:
                await asyncio.to_thread(self._files.remove, self._outdated.pop())

    async def _flush_forever(self) -> None:
        while not self._closing.is_set() and any(recorder.is_open for _, recorder in self._recorders.values()):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._closing.wait()
            try:
                await self.flush()
            except Exception:
                _log.exception("captured requests are not written for now")

    def _forget(self, rid: bytes, recorder: Recorder, *, is_deleted: bool) -> None:
        recorder.close()
        self._outdated.append(recorder.order.id)
        known = self._recorders.get(rid)
        if known is not None and known[1] is recorder:
            del self._recorders[rid]
        if is_deleted:
            _log.warning("the capture of %s ended: the container was deleted, its records too", recorder.name)

    async def _flush(self, keyspace: Keyspace, order: CaptureOrder, recorder: Recorder) -> None:
        if not order.is_running(now=self._wall_seconds()):
            recorder.close()
        trouble = await self._write(order, recorder)
        if trouble and recorder.is_open:
            recorder.close()
            await self._end(keyspace, order, trouble, name=recorder.name)

    async def _write(self, order: CaptureOrder, recorder: Recorder) -> str:
        """Write what waits; return the reason why some of it could not be written."""
        lines = recorder.take()
        if not lines:
            return ""
        first, bytes_max = recorder.first_line, order.bytes_max
        try:
            written = await asyncio.to_thread(self._files.append, order.id, lines, first=first, bytes_max=bytes_max)
        except OSError as problem:
            return f"its files cannot be written: {problem.strerror}"
        return "" if written == len(lines) else f"its records reached {bytes_max:,} bytes"

    async def _end(self, keyspace: Keyspace, order: CaptureOrder, because: str, *, name: str) -> None:
        _log.warning("the capture of %s ended because %s", name, because)
        self._unrecorded_ends[order.id] = because

        def end(before: CaptureOrder | None) -> CaptureOrder | None:
            is_same = before is not None and before.id == order.id and not before.ended_because
            return replace(before, ended_because=because) if before is not None and is_same else before

        try:
            await self._catalog.replace_capture(keyspace, end)
        except AsterismError as problem:
            # A full disk may refuse this too. Each process has its own reason then, and after a restart it goes on.
            _log.warning("the end of the capture of %s is not recorded: %s", name, problem)
        else:
            self._unrecorded_ends.pop(order.id, None)
