"""A queue: messages on a keyspace, each in the order of the moment from which it is visible.

Every call is one batch, which expects the entries that it was planned on and the generation of the queue. When another
writer was faster, it is planned again on fresh data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from asterism.clock import Clock
from asterism.errors import ResourceNotFound, TooMuchContention
from asterism.keyspaces.reshaping.load_watch import LoadWatch
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.commit import Committer
from asterism.keyspaces.routing.contention import ATTEMPTS_MAX
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import MIB, Limits
from asterism.models.queues.head import LATE_WAIT_SECONDS, SETTLED_TICKS, QueueHead, QueueHeads, is_late
from asterism.models.queues.layout import (
    MESSAGE_ID_BYTES,
    NEVER,
    MessageState,
    StoredMessage,
    count_key,
    point_of,
    text_key,
    unpack_message,
    visibility_key,
    visibility_prefix,
    visible_until,
)
from asterism.models.queues.messages import Message, MessageFailure, MessageRefused
from asterism.models.queues.planner import Planner, QueueChange, plan_deletion, plan_replacement, record_key
from asterism.models.queues.receipts import Receipt
from asterism.models.queues.record import QueueRecord
from asterism.storage.contract import ExpectationFailed, ScanPage, Span, decode_counters
from asterism.throughput import charge

_PAGE_ENTRIES_MAX: Final = 500
_PAGE_BYTES_MAX: Final = MIB
# A scan that does not know where messages begin passes deleted entries, by as many at once as it wants to find.
_SEARCH_ENTRIES: Final = 256
# How far a get that was overtaken by another process goes aside, at random.
_ASIDE_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class QueueServices:
    """The parts of the program that queues need."""

    router: PartitionRouter
    reshaper: Reshaper
    load: LoadWatch
    limits: Limits
    clock: Clock
    # Moments, each later than the one before.
    next_ticks: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    heads: QueueHeads = field(default_factory=QueueHeads)


class Queue:
    """A queue and its messages. Held for the length of a request.

    Every call raises ResourceNotFound if the queue was deleted meanwhile.
    """

    __slots__ = ("_committer", "_planner", "_services", "account", "keyspace", "name", "point", "record")

    def __init__(
        self, account: str, name: str, keyspace: Keyspace, record: QueueRecord, services: QueueServices
    ) -> None:
        self.account = account
        self.name = name
        self.keyspace = keyspace
        self.point = point_of(name)
        self._services = services
        # A partition has no largest size: it is split when it is large, while writes go on.
        self._committer = Committer(
            keyspace, services.router, services.reshaper, logical_bytes_max=None, physical_bytes_max=None
        )
        self._go_by(record)

    def _go_by(self, record: QueueRecord) -> None:
        self.record = record
        self._planner = Planner(self.point, record.generation)

    @property
    def _head(self) -> QueueHead:
        """Look the head up at each use: a write that ends must note its place in the head that is in use then."""
        return self._services.heads.head_of(self.keyspace.record.rid, self.point, self.record.generation)

    # --- messages ---------------------------------------------------------------------------------------------------

    async def put(self, text: bytes, *, delay_ticks: int, live_ticks: int | None) -> Message:
        """Add a message that is visible after a delay, and expires after a time (None: never)."""
        message_id = self._services.random_bytes(MESSAGE_ID_BYTES)
        for _ in range(ATTEMPTS_MAX):
            now = self._services.next_ticks()
            expires_at = NEVER if live_ticks is None else min(now + live_ticks, NEVER)
            state = MessageState(now, expires_at, 0, len(text))
            visible_at = now + delay_ticks
            try:
                await self.commit(self._planner.put(message_id, visible_at, state, text))
            except ExpectationFailed as failed:
                await self._overtaken(failed)
            else:
                await self._settle(visible_at)
                return Message(message_id, self.record.generation, visible_at, state, text)
            finally:
                self._note(visible_at, message_id)
        raise TooMuchContention

    async def get(self, count: int, *, invisible_ticks: int) -> list[Message]:
        """Take up to `count` visible messages: for a time, nothing else sees them. Callers at once get different
        messages."""
        for overtaken in range(ATTEMPTS_MAX):
            now = self._services.next_ticks()
            head, found = await self._claim(now, count, aside=self._aside(overtaken))
            if not found:
                self._spend(charge.MISS)
                return []
            try:
                texts = _all_of(await self._texts(found), found)
                change, taken = self._planner.take(found, texts, until=now + invisible_ticks)
                await self.commit(change)
            except ExpectationFailed as failed:
                await self._overtaken(failed)
            else:
                for message in taken:
                    self._note(message.visible_at, message.message_id)
                await self._settle(taken[0].visible_at)
                return taken
            finally:
                head.claims.difference_update([message.key for message in found])
        raise TooMuchContention

    async def peek(self, count: int) -> list[Message]:
        """Return up to `count` visible messages as they are."""
        for _ in range(ATTEMPTS_MAX):
            found = await self._visible(self._services.next_ticks(), count)
            texts = await self._texts(found)
            if None not in texts:
                break
            # One was deleted after it was found: others may be visible.
        generation = self.record.generation
        peeked = [
            Message(message.message_id, generation, message.visible_at, message.state, text)
            for message, text in zip(found, texts, strict=True)
            if text is not None
        ]
        self._spend(charge.feed_page(items=len(peeked), page_bytes=sum(len(message.text) for message in peeked)))
        return peeked

    async def update(self, message_id: bytes, receipt: Receipt, *, invisible_ticks: int, text: bytes | None) -> Receipt:
        """Make a message visible after a time, with another text unless that is None; return its new receipt."""
        for _ in range(ATTEMPTS_MAX):
            now = self._services.next_ticks()
            message = await self._message(message_id, receipt, now)
            visible_at = now + invisible_ticks
            if visible_at >= message.state.expires_at:
                raise MessageRefused(MessageFailure.VISIBLE_AFTER_EXPIRY)
            change, visible_at = self._planner.update(message, visible_at=visible_at, text=text)
            try:
                await self.commit(change)
            except ExpectationFailed as failed:
                await self._overtaken(failed)
            else:
                await self._settle(visible_at)
                return Receipt(self.record.generation, visible_at)
            finally:
                self._note(visible_at, message_id)
        raise TooMuchContention

    async def delete(self, message_id: bytes, receipt: Receipt) -> None:
        for _ in range(ATTEMPTS_MAX):
            message = await self._message(message_id, receipt, self._services.next_ticks())
            try:
                await self.commit(self._planner.delete(message))
            except ExpectationFailed as failed:
                await self._overtaken(failed)
            else:
                return
        raise TooMuchContention

    async def count(self) -> int:
        """Return the number of messages, visible or not; for a moment after they expire, they may count."""
        key = count_key(self.point, self.record.generation)
        _, _, (stored,) = await self._services.router.read(self.keyspace, self.point, [key])
        return sum(decode_counters(stored))

    # --- the queue itself -------------------------------------------------------------------------------------------

    async def clear(self) -> None:
        """Remove all messages, whatever their number, in one batch: their entries go in the background."""
        generation = self._services.random_bytes(len(self.record.generation))
        await self.change_record(
            lambda record: QueueRecord(generation, record.created_at, record.metadata, record.policies)
        )

    async def change_record(self, change: Callable[[QueueRecord], QueueRecord]) -> None:
        for _ in range(ATTEMPTS_MAX):
            before = await self._stored_record()
            after = change(QueueRecord.from_bytes(before))
            try:
                await self.commit(plan_replacement(self.point, before, after))
            except ExpectationFailed:
                continue
            self._go_by(after)
            return
        raise TooMuchContention

    async def remove(self) -> None:
        """Delete the queue with its messages."""
        for _ in range(ATTEMPTS_MAX):
            try:
                await self.commit(plan_deletion(self.point, await self._stored_record()))
            except ExpectationFailed:
                continue
            return
        raise TooMuchContention

    async def _stored_record(self) -> bytes:
        _, _, (stored,) = await self._services.router.read(self.keyspace, self.point, [record_key(self.point)])
        if stored is None:
            raise ResourceNotFound(kind="queue", name=self.name)
        return stored

    # --- reading ----------------------------------------------------------------------------------------------------

    async def _message(self, message_id: bytes, receipt: Receipt, now: int) -> StoredMessage:
        """Return the message in the state that a receipt names; MessageRefused if it has another, or is gone."""
        generation = self.record.generation
        if receipt.generation != generation:
            raise MessageRefused(MessageFailure.NOT_FOUND)
        key = visibility_key(self.point, generation, visible_at=receipt.visible_at, message_id=message_id)
        router = self._services.router
        _, _, (stored,) = await router.read(self.keyspace, self.point, [key])
        if stored is not None:
            message = unpack_message(key, stored)
            if message.state.expires_at > now:
                return message
        else:
            _, _, (text,) = await router.read(self.keyspace, self.point, [text_key(self.point, generation, message_id)])
            if text is not None:
                raise MessageRefused(MessageFailure.RECEIPT_OUTDATED)
        raise MessageRefused(MessageFailure.NOT_FOUND)

    async def _claim(self, now: int, count: int, *, aside: int) -> tuple[QueueHead, list[StoredMessage]]:
        """Find messages that no other caller is about to take, and claim them: the caller gives them back to the head,
        which is returned with them."""
        head = self._head
        head.wanted += count
        try:
            found = await self._visible(now, count + aside, taker=head)
        finally:
            head.wanted -= count
        skipped = min(aside, max(0, len(found) - count))
        chosen = found[skipped : skipped + count]
        head.claims.update([message.key for message in chosen])
        return head, chosen

    async def _visible(self, now: int, count: int, *, taker: QueueHead | None = None) -> list[StoredMessage]:
        """Find the first visible messages. A taker wants those that are not claimed: none of them is when this
        returns."""
        head, generation = self._head, self.record.generation
        claims: Set[bytes] = taker.claims if taker is not None else frozenset()
        version = head.version
        prefix = visibility_prefix(self.point, generation)
        start, end = head.start(prefix, now), visible_until(self.point, generation, now)
        entries_min = _SEARCH_ENTRIES if start == prefix else 1
        rest: Span | None = Span(start, end) if start < end else None
        first = end
        found: list[StoredMessage] = []
        while rest is not None:
            # Gets that search at once read the same entries, and each takes others of them.
            beside = len(claims) + taker.wanted - count if taker is not None else 0
            page = await self._scan(rest, min(max(count - len(found) + beside, entries_min), _PAGE_ENTRIES_MAX))
            # Others may have claimed some meanwhile.
            found = [message for message in found if message.key not in claims]
            for key, value in page.entries:
                if key not in claims:
                    message = unpack_message(key, value)
                    if message.state.expires_at <= now:
                        continue
                    found.append(message)
                first = min(first, key)
            rest = page.rest(rest)
            if rest is None or len(found) >= count:
                break
            # The rest may be long: messages that have expired and are not removed yet.
            entries_min = _SEARCH_ENTRIES
            await asyncio.sleep(0)
        head.found(min(first, self._settled_until(now, end)), version=version)
        return found[:count]

    def _settled_until(self, now: int, end: bytes) -> bytes:
        """Return the key before which no write that is under way places a message, but for those of this process."""
        if not self._services.router.has_others:
            return end
        return visible_until(self.point, self.record.generation, max(0, now - SETTLED_TICKS))

    async def _scan(self, span: Span, limit: int) -> ScanPage:
        keyspace = self.keyspace
        while True:
            record = keyspace.record
            page = await self._services.router.scan(
                keyspace, record, record.map.find(self.point), span, limit=limit, bytes_max=_PAGE_BYTES_MAX
            )
            if page is not None:
                return page

    async def _texts(self, messages: Sequence[StoredMessage]) -> list[bytes | None]:
        if not messages:
            return []
        keys = [text_key(self.point, self.record.generation, message.message_id) for message in messages]
        _, _, texts = await self._services.router.read(self.keyspace, self.point, keys)
        return texts

    # --- writing ----------------------------------------------------------------------------------------------------

    async def commit(self, change: QueueChange) -> None:
        self._wake_load_watch()
        with self.keyspace.in_flight:
            await self._committer.commit(
                self.point,
                change.batch,
                bytes_delta=change.bytes_delta,
                items_delta=change.items_delta,
                cost=change.cost,
            )

    async def _overtaken(self, failed: ExpectationFailed) -> None:
        """Take over the state of the queue after a batch was refused."""
        if failed.key == record_key(self.point):
            self._go_by(QueueRecord.from_bytes(await self._stored_record()))

    def _aside(self, overtaken: int) -> int:
        """Return how many messages a get leaves to the other processes that overtook it: at random, so that they do not
        meet again."""
        return self._services.random_bytes(1)[0] % min(4 * overtaken, _ASIDE_MAX) if overtaken else 0

    def _note(self, visible_at: int, message_id: bytes) -> None:
        key = visibility_key(self.point, self.record.generation, visible_at=visible_at, message_id=message_id)
        self._head.written(key)

    async def _settle(self, visible_at: int) -> None:
        """Return when gets of every process find what was just placed at a moment: at once, unless that took long."""
        services = self._services
        if services.router.has_others and is_late(visible_at, now=services.next_ticks()):
            await asyncio.sleep(LATE_WAIT_SECONDS)

    def _spend(self, cost: float) -> None:
        self.keyspace.spend(self.keyspace.record.map.find(self.point), cost, self.point)
        self._wake_load_watch()

    def _wake_load_watch(self) -> None:
        load = self._services.load
        if load.is_asleep:
            load.wake()


def _all_of(texts: Sequence[bytes | None], messages: Sequence[StoredMessage]) -> list[bytes]:
    """Return texts that were read after their messages; ExpectationFailed if a message is gone by then."""
    present: list[bytes] = []
    for text, message in zip(texts, messages, strict=True):
        if text is None:
            raise ExpectationFailed(message.key)
        present.append(text)
    return present
