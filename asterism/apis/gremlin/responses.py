"""Answers of one request: its status attributes, and results collected into messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from asterism.apis.gremlin.encoders import Encoder
from asterism.apis.gremlin.errors import PARTIAL_CONTENT, SUCCESS, Refusal
from asterism.apis.gremlin.malformed import ResultRefused

BATCH_SIZE_DEFAULT: Final = 64
BATCH_SIZE_MAX: Final = 1000
# Clients close connections that bring messages above 10 MiB; smaller ones also let others have their turn.
MESSAGE_BYTES_MAX: Final = 1024 * 1024
# More of a result can be counted, but not told in 64 bits.
BULK_MAX: Final = 2**63 - 1


class ResponseWriter:
    """Makes the messages of one answer. Every one has all attributes; clients keep those of the last."""

    __slots__ = (
        "_activity_id",
        "_charged",
        "_item_bytes_max",
        "_items",
        "_message_bytes_max",
        "_now",
        "_request_id",
        "_size",
        "_started_at",
        "_timed",
        "batch_size",
        "encoder",
    )

    def __init__(
        self,
        request_id: str,
        encoder: Encoder,
        *,
        activity_id: str,
        batch_size: int,
        item_bytes_max: int,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        monotonic_seconds: Callable[[], float],
    ) -> None:
        self._request_id = request_id
        self.encoder = encoder
        self._activity_id = activity_id
        # Results of one message; bytes are counted apart from it.
        self.batch_size = batch_size
        self._item_bytes_max = item_bytes_max
        self._message_bytes_max = message_bytes_max
        self._items: list[bytes] = []
        self._size = 0
        self._now = monotonic_seconds
        # The part of the request's time and charge that earlier messages have.
        self._started_at = monotonic_seconds()
        self._timed = 0.0
        self._charged = 0.0

    def add(self, value: Any, bulk: int, charge: Callable[[], float]) -> Iterator[bytes]:
        """Add a result, and yield the messages that are full. `charge` returns the request units so far."""
        encoder = self.encoder
        item = encoder.item(value, min(bulk, BULK_MAX))
        if len(item) > self._item_bytes_max:
            raise ResultRefused(
                f"A result has {len(item):,} bytes, and clients read no message above {self._item_bytes_max:,}. "
                "Ask for several smaller results, for example without fold()."
            )
        for _ in range(1 if encoder.wraps_traversers else bulk):
            is_large = self._size + len(item) > self._message_bytes_max
            if len(self._items) >= self.batch_size or (self._items and is_large):
                yield self._flush(PARTIAL_CONTENT, charge())
            self._items.append(item)
            self._size += len(item) + 1

    def finish(self, charge: float) -> bytes:
        """Return the last message, with the results that are left."""
        return self._flush(SUCCESS, charge)

    def finish_without_results(self, code: int) -> bytes:
        self._items.clear()
        return self._flush(code, 0.0)

    def refuse(self, refusal: Refusal, charge: float) -> bytes:
        """Return the message that ends the answer instead of results; those that were not sent are dropped."""
        self._items.clear()
        attributes = self._attributes(refusal.status, charge) | refusal.attributes()
        return self.encoder.message(self._request_id, refusal.code, self.text_of(refusal), attributes, ())

    def text_of(self, refusal: Refusal) -> str:
        return refusal.message(activity_id=self._activity_id, request_id=self._request_id)

    def _flush(self, code: int, charge: float) -> bytes:
        attributes = self._attributes(SUCCESS if code == PARTIAL_CONTENT else code, charge)
        message = self.encoder.message(self._request_id, code, "", attributes, self._items)
        self._items = []
        self._size = 0
        return message

    def _attributes(self, status: int, charge: float) -> dict[str, Any]:
        total_milliseconds = (self._now() - self._started_at) * 1000
        found = {
            "x-ms-status-code": status,
            "x-ms-activity-id": self._activity_id,
            "x-ms-request-charge": float(round(charge - self._charged, 4)),
            "x-ms-total-request-charge": float(round(charge, 4)),
            "x-ms-server-time-ms": float(round(total_milliseconds - self._timed, 4)),
            "x-ms-total-server-time-ms": float(round(total_milliseconds, 4)),
        }
        self._charged, self._timed = charge, total_milliseconds
        return found
