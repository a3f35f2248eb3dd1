"""Links on which clients receive the events of a partition, in the name of a consumer group."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Final

from asterism.apis.amqp.errors import words
from asterism.apis.amqp.hubs.event_messages import RuntimeMetrics, message_of
from asterism.apis.amqp.nodes import INTERNAL_ERROR, AmqpError, AttachReply, Outcome, OutgoingLink, Settlement
from asterism.errors import AsterismError
from asterism.limits import KIB
from asterism.models.event_logs.events import Event
from asterism.models.event_logs.log import LogReader

_log = logging.getLogger(__name__)

# One page: the event loop belongs to others after a millisecond or two.
PAGE_EVENTS_MAX: Final = 500
PAGE_BYTES_MAX: Final = 512 * KIB
_TAG_BYTES: Final = 4


class HubOutlet:
    """Sends events as the client gives credit, by a task of its own. Nothing is remembered of what was sent: clients
    keep their place themselves."""

    def __init__(
        self,
        link: OutgoingLink,
        reader: LogReader,
        reply: AttachReply,
        *,
        is_presettled: bool,
        has_metrics: bool,
        now_ms: Callable[[], int],
        on_closed: Callable[[], None],
    ) -> None:
        self.reply = reply
        self._link = link
        self._reader = reader
        self._is_presettled = is_presettled
        self._has_metrics = has_metrics
        self._now_ms = now_ms
        self._on_closed = on_closed
        self._tags = itertools.count()
        # Set when there may be something to do: credit, events, or the wish to drain.
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    # --- called by the engine -----------------------------------------------------------------------------------------

    def start(self) -> None:
        if not self._is_closed:
            self._task = asyncio.get_running_loop().create_task(self._send_events())

    def credit_changed(self) -> None:
        self._stirred.set()

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Outcome]:
        return [settlement.outcome for settlement in settlements]

    def closed(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._reader.log.end.cancel(self._stir)
        if self._task is not None:
            self._task.cancel()
        self._on_closed()

    def end(self, error: AmqpError) -> None:
        """End the link from this side."""
        if not self._is_closed:
            self._link.detach(error)
            self.closed()

    # --- sending ------------------------------------------------------------------------------------------------------

    def _stir(self) -> None:
        self._stirred.set()

    async def _send_events(self) -> None:
        try:
            while not self._link.is_closed:
                # Before looking, so that what comes meanwhile is not missed.
                self._stirred.clear()
                events = await self._next_page()
                if events:
                    self._send(events)
                    await self._link.writable()
                elif not self._link.is_closed:
                    await self._rest()
        except AsterismError as error:
            self.end(words(error))
        except Exception:
            _log.exception("a receiver of a hub has failed")
            self.end(AmqpError(INTERNAL_ERROR, "The server has failed to read the partition."))

    async def _next_page(self) -> Sequence[Event]:
        if self._link.credit <= 0:
            return ()
        wait_seconds = self._reader.log.wait_seconds_out()
        if wait_seconds:
            await asyncio.sleep(wait_seconds)
        return await self._reader.read(events_max=min(self._link.credit, PAGE_EVENTS_MAX), bytes_max=PAGE_BYTES_MAX)

    async def _rest(self) -> None:
        """Wait for credit, or with credit for the next event."""
        link, end = self._link, self._reader.log.end
        if link.is_draining and link.credit > 0:
            link.drained()
        if link.credit > 0:
            end.call_on_news(self._reader.next_sequence, self._stir)
        try:
            await self._stirred.wait()
        finally:
            end.cancel(self._stir)

    def _send(self, events: Sequence[Event]) -> None:
        link, is_settled = self._link, self._is_presettled
        metrics = self._metrics() if self._has_metrics else None
        for place, event in enumerate(events):
            if link.is_closed or link.credit <= 0:
                # The client has taken credit back while the page was read.
                self._reader.go_back(events[place].sequence)
                break
            payload = message_of(event) if metrics is None else metrics.within(message_of(event))
            tag = (next(self._tags) & 0xFFFFFFFF).to_bytes(_TAG_BYTES, "big")
            link.send(payload, tag=tag, is_settled=is_settled, keeps_state=False)

    def _metrics(self) -> RuntimeMetrics:
        tail = self._reader.log.end.known
        assert tail is not None, "events were read up to a known end"
        return RuntimeMetrics(
            last_sequence=tail.next_sequence - 1, last_enqueued_ms=tail.enqueued_ms, now_ms=self._now_ms()
        )
