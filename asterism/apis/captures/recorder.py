"""The capture of one container in one process: which requests are kept, in which form, and how many may wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from asterism.advisor.captured_request import CapturedRequest, CaptureHeader
from asterism.advisor.value_digests import Scalar, digest
from asterism.keyspaces.catalog.capture_order import CaptureOrder

# Lines that wait for the disk, of one container: the requests of some seconds. Further ones are dropped and counted.
WAITING_BYTES_MAX: Final = 4 * 1024 * 1024
# A longer text in a capture of plain values is kept as its digest, so that equal texts are still equal.
PLAIN_TEXT_CHARACTERS_MAX: Final = 256


class Recorder:
    """Takes requests without waiting for anything, and hands their lines to whichever task writes them."""

    __slots__ = (
        "_dropped",
        "_header",
        "_number",
        "_random",
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
        random: Callable[[], float],
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
        self._random = random
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._waiting_bytes_max = waiting_bytes_max
        self._dropped = 0
        self._number = 0

    def takes_next(self) -> bool:
        """Decide whether a request is kept, with all operations in it."""
        return self.is_open and self._random() < self.sampling

    def new_batch_name(self) -> str:
        self._number += 1
        return f"{self.part}.{self._number}"

    def add(self, requests: Sequence[CapturedRequest]) -> None:
        """Keep all operations of a request, or count them as dropped."""
        lines = [request.to_json(shown=self._shown) for request in requests]
        size = sum(map(len, lines))
        if not self.is_open or self._waiting_bytes + size > self._waiting_bytes_max:
            self._dropped += len(lines)
            return
        self._waiting += lines
        self._waiting_bytes += size

    @property
    def first_line(self) -> bytes:
        return self._header.to_json()

    def take(self) -> list[bytes]:
        """Return the lines that wait, and forget them. The number of those that were dropped is a header of its own."""
        lines, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if self._dropped:
            self._header.dropped, self._dropped = self._dropped, 0
            lines.append(self._header.to_json())
            self._header.dropped = 0
        return lines

    def close(self) -> None:
        self.is_open = False


def _digest(salt: bytes) -> Callable[[Scalar], Scalar]:
    return lambda value: digest(value, salt=salt)


def _plain(salt: bytes) -> Callable[[Scalar], Scalar]:
    def shown(value: Scalar) -> Scalar:
        is_long = type(value) is str and len(value) > PLAIN_TEXT_CHARACTERS_MAX
        return digest(value, salt=salt) if is_long else value

    return shown
