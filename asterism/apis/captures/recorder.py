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

# Requests of one container that wait to be described, with their bodies. Further ones are dropped and counted.
WAITING_BYTES_MAX: Final = 16 * 1024 * 1024
# Of a request without bodies, as a rough measure.
_REQUEST_BYTES: Final = 2048
# Requests described at a time, before others are answered: half a millisecond.
_DESCRIBED_AT_A_TIME: Final = 16
# A longer text in a capture of plain values is kept as its digest, so that equal texts are still equal.
PLAIN_TEXT_CHARACTERS_MAX: Final = 256


# Describes the operations of a request; called once, later.
Describe = Callable[[], Sequence[CapturedRequest]]


class Recorder:
    """Takes requests without waiting for anything, and makes lines of them for the task that writes.

    A request is only put aside while its client waits. Many described one after the other cost each a third of the time
    that it would take between two requests, because code and data are at hand.
    """

    __slots__ = (
        "_dropped",
        "_header",
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
        self._waiting_bytes_max = waiting_bytes_max
        self._dropped = 0
        self._number = 0

    def new_batch_name(self) -> str:
        self._number += 1
        return f"{self.part}.{self._number}"

    def add(self, describe: Describe, *, bytes_held: int) -> None:
        """Put a request aside, or count it as dropped. `bytes_held` are those of its bodies."""
        size = _REQUEST_BYTES + bytes_held
        if not self.is_open or self._waiting_bytes + size > self._waiting_bytes_max:
            self._dropped += 1
            return
        self._waiting.append(describe)
        self._waiting_bytes += size

    @property
    def first_line(self) -> bytes:
        return self._header.to_json()

    async def take(self) -> list[bytes]:
        """Return the lines of the requests put aside, and forget them. The number of those that were dropped is in a
        header of its own."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        lines: list[bytes] = []
        for place, describe in enumerate(waiting, start=1):
            lines += self._lines_of(describe)
            if not place % _DESCRIBED_AT_A_TIME:
                await asyncio.sleep(0)
        if self._dropped:
            self._header.dropped, self._dropped = self._dropped, 0
            lines.append(self._header.to_json())
            self._header.dropped = 0
        return lines

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
