"""The capture of one container in one process: which requests are kept, in which form, and how many may wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from asterism.advisor.captured_request import CapturedRequest, CaptureHeader
from asterism.advisor.value_digests import Scalar, digest
from asterism.keyspaces.catalog.capture_order import CaptureOrder

_log = logging.getLogger(__name__)

# Of one container: requests that wait to be described, with their bodies, and lines that wait for the disk. Further
# requests are dropped and counted.
WAITING_BYTES_MAX: Final = 8 * 1024 * 1024
# So many requests are described together, as soon as the last of them is answered. More would hold their memory for so
# long that other requests find none in the caches of the processor; that cost twice as much as describing them.
_DESCRIBED_TOGETHER: Final = 16
# Large bodies take long enough one by one.
_DESCRIBED_BYTES: Final = 64 * 1024
# Of a request without bodies, as a rough measure.
_REQUEST_BYTES: Final = 2048
# A longer text in a capture of plain values is kept as its digest, so that equal texts are still equal.
PLAIN_TEXT_CHARACTERS_MAX: Final = 256


# Describes the operations of a request; called once, later.
Describe = Callable[[], Sequence[CapturedRequest]]


class Recorder:
    """Takes requests without waiting for anything, and makes lines of them for the task that writes.

    A request is only put aside while its client waits. Several described one after the other cost each half the time
    that one takes between two requests, because the code is in the caches of the processor.
    """

    __slots__ = (
        "_dropped",
        "_header",
        "_is_due",
        "_lines",
        "_lines_bytes",
        "_number",
        "_shown",
        "_waiting",
        "_waiting_bytes",
        "_waiting_bytes_max",
        "is_open",
        "name",
        "order",
        "part",
        "sampling",
    )

    def __init__(
        self,
        order: CaptureOrder,
        *,
        database: str,
        container: str,
        part: str,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        """`part` is in the names of batches, which the recorders of other processes name too."""
        self.order = order
        self.sampling = order.sampling
        self.part = part
        self.name = f"{database}/{container}"
        self.is_open = True
        self._header = CaptureHeader(
            database=database,
            container=container,
            started=order.started_at,
            sampling=order.sampling,
            values="plain" if order.keeps_values else "digests",
        )
        self._shown = _plain(order.salt) if order.keeps_values else _digest(order.salt)
        self._waiting: list[Describe] = []
        self._waiting_bytes = 0
        self._is_due = False
        self._lines: list[bytes] = []
        self._lines_bytes = 0
        self._waiting_bytes_max = waiting_bytes_max
        self._dropped = 0
        self._number = 0

    def new_batch_name(self) -> str:
        self._number += 1
        return f"{self.part}.{self._number}"

    def add(self, describe: Describe, *, bytes_held: int) -> None:
        """Put a request aside, or count it as dropped. `bytes_held` are those of its bodies."""
        size = _REQUEST_BYTES + bytes_held
        if not self.is_open or self._waiting_bytes + self._lines_bytes + size > self._waiting_bytes_max:
            self._dropped += 1
            return
        self._waiting.append(describe)
        self._waiting_bytes += size
        is_due = len(self._waiting) >= _DESCRIBED_TOGETHER or self._waiting_bytes >= _DESCRIBED_BYTES
        if is_due and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._describe_waiting)

    @property
    def first_line(self) -> bytes:
        return self._header.to_json()

    def take(self) -> list[bytes]:
        """Return the lines of the requests put aside, and forget them. The number of those that were dropped is in a
        header of its own."""
        self._describe_waiting()
        lines, self._lines, self._lines_bytes = self._lines, [], 0
        if self._dropped:
            self._header.dropped, self._dropped = self._dropped, 0
            lines.append(self._header.to_json())
            self._header.dropped = 0
        return lines

    def _describe_waiting(self) -> None:
        waiting, self._waiting, self._waiting_bytes, self._is_due = self._waiting, [], 0, False
        for describe in waiting:
            lines = self._lines_of(describe)
            self._lines += lines
            self._lines_bytes += sum(map(len, lines))

    def _lines_of(self, describe: Describe) -> list[bytes]:
        try:
            return [request.to_json(shown=self._shown) for request in describe()]
        except Exception:
            # The request itself was answered long ago.
            _log.exception("a request is left out of the capture of %s", self.name)
            self._dropped += 1
            return []

    def close(self) -> None:
        self.is_open = False


def _digest(salt: bytes) -> Callable[[Scalar], Scalar]:
    return lambda value: digest(value, salt=salt)


def _plain(salt: bytes) -> Callable[[Scalar], Scalar]:
    def shown(value: Scalar) -> Scalar:
        is_long = type(value) is str and len(value) > PLAIN_TEXT_CHARACTERS_MAX
        return digest(value, salt=salt) if is_long else value

    return shown
