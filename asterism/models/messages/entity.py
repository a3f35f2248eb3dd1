"""A queue or topic in this process: its terms, its fragments, its channels, and sending to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from asterism.errors import ResourceNotFound, StorageUnavailable
from asterism.models.messages.activity import NoteUse
from asterism.models.messages.channel import Channel
from asterism.models.messages.descriptions import Description, QueueDescription, TopicDescription
from asterism.models.messages.draft import Draft
from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import (
    COUNTERS,
    NEVER,
    channel_of,
    parts_of_channel,
    place_of_number,
    shown_number,
)
from asterism.models.messages.messages import (
    Counts,
    Failure,
    FragmentState,
    FragmentStatus,
    MessagingRefused,
    NewMessage,
    SubQueue,
)
from asterism.models.messages.sending import CancelScheduled, Send
from asterism.models.messages.terms import EntityTerms
from asterism.models.messages.transaction import Transaction
from asterism.partitioning.hub_partition import hub_partition
from asterism.storage.contract import decode_counters

if TYPE_CHECKING:
    from asterism.models.messages.services import MessageServices
    from asterism.models.namespaces.store import EntityRecord

# A client waits a minute for its answer: there is time to ask the next fragment.
_FIRST_TRY_SECONDS: Final = 2.0
_SUB_QUEUE_PATHS: Final = {
    SubQueue.MAIN: "",
    SubQueue.DEAD_LETTER: "/$DeadLetterQueue",
    SubQueue.TRANSFER_DEAD_LETTER: "/$Transfer/$DeadLetterQueue",
}
# A use is stored when a quarter of the period has passed since the last that was (G: five minutes and more).
_USES_PER_PERIOD: Final = 4


class Entity:
    """See the module. There is one for each queue and topic in a process."""

    def __init__(self, record: EntityRecord, services: MessageServices) -> None:
        self.namespace = record.namespace
        self.name = record.name
        self.kind = record.kind
        self.fragment_count = record.partition_count
        self.keyspace = record.keyspace
        self.services = services
        self._terms: EntityTerms | None = None
        self._fragments: list[Fragment] | None = None
        self._channels: WeakValueDictionary[bytes, Channel] = WeakValueDictionary()
        # Channels that must not be forgotten: they have locks, or callers that wait.
        self._pinned: set[Channel] = set()
        self._next_fragment = 0
        # Subscription -> the last use of it in this process, and the last one that was stored. Number 0 is the entity.
        self.used_ms: dict[int, int] = {}
        self._stored_use_ms: dict[int, int] = {}
        self.known_since_ms = services.now_ms()

    # --- terms ------------------------------------------------------------------------------------------------------

    @property
    def is_gone(self) -> bool:
        return self.keyspace.deleted

    @property
    def is_partitioned(self) -> bool:
        return self.fragment_count > 1

    @property
    def terms(self) -> EntityTerms:
        settings = self.keyspace.record.settings
        terms = self._terms
        if terms is None or terms.settings is not settings:
            description = self.services.describe(self.kind, settings)
            terms = self._terms = EntityTerms(settings, description, self.services.compile_rules)
        return terms

    @property
    def description(self) -> Description:
        return self.terms.description

    @property
    def topic(self) -> TopicDescription:
        """Return the description of a topic; ResourceNotFound if this is a queue."""
        description = self.description
        if not isinstance(description, TopicDescription):
            raise ResourceNotFound(kind="topic", name=self.name)
        return description

    @property
    def queue(self) -> QueueDescription:
        """Return the description of a queue; ResourceNotFound if this is a topic."""
        description = self.description
        if not isinstance(description, QueueDescription):
            raise ResourceNotFound(kind="queue", name=self.name)
        return description

    # --- fragments --------------------------------------------------------------------------------------------------

    @property
    def all_fragments(self) -> list[Fragment]:
        fragments = self._fragments
        if fragments is None:
            fragments = self._fragments = [Fragment(self, number) for number in range(self.fragment_count)]
        return fragments

    async def idle(self) -> None:
        """Return when no batch is on its way."""
        for fragment in self._fragments or ():
            await fragment.writer.idle()

    def find_fragment(self, number: int) -> Fragment | None:
        fragments = self.all_fragments
        return fragments[number] if number < len(fragments) else None

    def fragment_of_key(self, key: str) -> Fragment:
        """Return the fragment that a key selects."""
        fragments = self.all_fragments
        return fragments[0] if len(fragments) == 1 else fragments[hub_partition(key, len(fragments))]

    def fragment_of_number(self, sequence_numbers: Sequence[int]) -> Fragment:
        """Return the fragment that sequence numbers, as clients see them, are of."""
        numbers = {place_of_number(shown)[0] for shown in sequence_numbers}
        if len(numbers) > 1:
            raise MessagingRefused(Failure.NOT_ALLOWED, "The sequence numbers are of several fragments.")
        fragment = self.find_fragment(numbers.pop())
        if fragment is None:
            raise MessagingRefused(Failure.MESSAGE_NOT_FOUND, "There is no message of this sequence number.")
        return fragment

    # --- sending ----------------------------------------------------------------------------------------------------

    async def send(self, messages: Sequence[NewMessage], *, key: str | None = None) -> list[int]:
        """Store messages, all or none of them; they are durable on return. Return their sequence numbers.

        In a partitioned entity they go to the fragment of the key, or of their own keys; messages without one go to
        any fragment that answers, and could be stored twice if a fragment fails in the middle of its answer.
        """
        self.touch(0)
        if not self.is_partitioned:
            fragment = self.all_fragments[0]
            _check_open(fragment)
            return list(await fragment.writer.submit(Send(messages)))
        selected = self.fragment_for(messages, key)
        if selected is None:
            return await self._send_anywhere(messages)
        if not selected.is_up:
            raise _fragment_down()
        try:
            numbers = await selected.writer.submit(Send(messages))
        except StorageUnavailable:
            selected.mark_down()
            raise _fragment_down() from None
        return self._shown(selected, numbers)

    def fragment_for(self, messages: Sequence[NewMessage], key: str | None) -> Fragment | None:
        """Return the fragment that messages must go to; None if they have no key. Raises NOT_ALLOWED if they belong to
        different ones."""
        if not self.is_partitioned:
            return self.all_fragments[0]
        chosen: Fragment | None = None if key is None else self.fragment_of_key(key)
        detects_duplicates = self.description.requires_duplicate_detection
        for message in messages:
            session_id, partition_key = message.session_id, message.partition_key
            if session_id is not None and partition_key is not None and session_id != partition_key:
                raise MessagingRefused(Failure.NOT_ALLOWED, "The session id and the partition key are not the same.")
            own = session_id if session_id is not None else partition_key
            if own is None and detects_duplicates and message.message_id:
                own = message.message_id
            if own is None:
                continue
            fragment = self.fragment_of_key(own)
            if chosen is None:
                chosen = fragment
            elif fragment is not chosen:
                raise MessagingRefused(Failure.NOT_ALLOWED, "The messages belong to different fragments.")
        return chosen

    async def _send_anywhere(self, messages: Sequence[NewMessage]) -> list[int]:
        fragments = self.all_fragments
        first = self._next_fragment
        self._next_fragment = (first + 1) % len(fragments)
        problem: Exception = _fragment_down()
        candidates = [fragments[(first + step) % len(fragments)] for step in range(len(fragments))]
        for fragment in [each for each in candidates if each.is_up]:
            operation = Send(messages)
            future = fragment.writer.submit(operation)
            done, _ = await asyncio.wait([future], timeout=_FIRST_TRY_SECONDS)
            if not done:
                fragment.writer.withdraw(operation)
                fragment.mark_down()
                continue
            try:
                return self._shown(fragment, operation.future.result())
            except StorageUnavailable as unavailable:
                problem = unavailable
                fragment.mark_down()
        raise problem

    def _shown(self, fragment: Fragment, numbers: Sequence[int]) -> list[int]:
        return [shown_number(fragment.number, number, is_partitioned=self.is_partitioned) for number in numbers]

    async def cancel_scheduled(self, sequence_numbers: Sequence[int]) -> None:
        """Remove scheduled messages, all or none; MESSAGE_NOT_FOUND if one is not there or is active already."""
        if not sequence_numbers:
            return
        fragment = self.fragment_of_number(sequence_numbers)
        numbers = [place_of_number(shown)[1] for shown in dict.fromkeys(sequence_numbers)]
        await fragment.writer.submit(CancelScheduled(numbers))

    def transaction(self) -> Transaction:
        return Transaction(self)

    # --- channels ---------------------------------------------------------------------------------------------------

    def channel(self, subscription: str | None, sub_queue: SubQueue) -> Channel:
        """Return the channel of the queue, or of a subscription; ResourceNotFound if it does not exist."""
        description = self.description
        if isinstance(description, TopicDescription) == (subscription is None):
            raise ResourceNotFound(kind="queue" if subscription is None else "topic", name=self.name)
        path, number = self.name, 0
        if subscription is not None:
            found = self.topic.find(subscription)
            if found is None:
                raise ResourceNotFound(kind="subscription", name=f"{self.name}/{subscription}")
            path, number = f"{self.name}/Subscriptions/{found.name}", found.number
        return self.channel_at(channel_of(number, sub_queue), path + _SUB_QUEUE_PATHS[sub_queue])

    def channel_at(self, key: bytes, path: str | None = None) -> Channel:
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = Channel(self, key, path or self.path_of(key))
        return channel

    def path_of(self, key: bytes) -> str:
        """Return the path of a channel as clients write it."""
        number, sub_queue = parts_of_channel(key)
        path = self.name
        if number and isinstance(self.description, TopicDescription):
            names = [each.name for each in self.description.subscriptions.values() if each.number == number]
            path += f"/Subscriptions/{names[0] if names else number}"
        return path + _SUB_QUEUE_PATHS[SubQueue(sub_queue)]

    def pin(self, channel: Channel) -> None:
        self._pinned.add(channel)

    def unpin(self, channel: Channel) -> None:
        self._pinned.discard(channel)

    def is_locked_here(self, channel: bytes, fragment: int, number: int) -> bool:
        found = self._channels.get(channel)
        return found is not None and found.locks.is_locked_here(fragment, number)

    # --- news of fragments ------------------------------------------------------------------------------------------

    def applied(self, fragment: Fragment, draft: Draft) -> None:
        """Announce the changes of a batch that is durable."""
        channels = self._channels
        for key, sessions in draft.fresh.items():
            channel = channels.get(key)
            if channel is not None:
                channel.grew(fragment.number, sessions)
        for returned in draft.returned:
            channel = channels.get(returned.channel)
            if channel is not None:
                channel.returned(fragment.number, returned.number, returned.session_id)
        if draft.due_ms < NEVER:
            self.services.due.schedule(self, fragment.number, draft.due_ms)
        if draft.terms.forwarding:
            self.services.forwarding.wake(self, [*draft.fresh, *(each.channel for each in draft.returned)])

    def forget(self, fragment: Fragment) -> None:
        """Forget what is known of a fragment: it is not known if its last batch was applied."""
        for channel in list(self._channels.values()):
            channel.forget(fragment.number)

    def went_down(self, fragment: Fragment) -> None:
        for channel in list(self._channels.values()):
            channel.went_down(fragment.number)

    def changed(self) -> None:
        """Let all callers look at the new terms, or find that the entity is gone."""
        for channel in list(self._channels.values()):
            channel.changed()
        if self.is_gone:
            self._pinned.clear()

    # --- use --------------------------------------------------------------------------------------------------------

    def touch(self, subscription: int) -> None:
        """Note a use of the entity, or of one of its subscriptions: those that are idle may be deleted."""
        now_ms = self.services.now_ms()
        self.used_ms[subscription] = now_ms
        if not self.services.router.has_others:
            return
        period_ms = self._auto_delete_ms(subscription)
        stored_ms = self._stored_use_ms.get(subscription, 0)
        if period_ms is not None and now_ms - stored_ms > period_ms // _USES_PER_PERIOD and not self.is_gone:
            self._stored_use_ms[subscription] = now_ms
            self.all_fragments[0].writer.submit(NoteUse(subscription, now_ms))

    def touch_if_waiting(self, subscription: int) -> None:
        """Note that receivers wait, which is a use."""
        for channel in self._pinned:
            if channel.subscription == subscription and channel.is_waiting:
                self.touch(subscription)
                return

    def created_ms_of(self, subscription: int) -> int:
        description = self.description
        if not subscription or not isinstance(description, TopicDescription):
            return description.created_ms
        found = [each.created_ms for each in description.subscriptions.values() if each.number == subscription]
        return found[0] if found else 0

    def _auto_delete_ms(self, subscription: int) -> int | None:
        description = self.description
        if not subscription or not isinstance(description, TopicDescription):
            return description.auto_delete_ms
        periods = [each.auto_delete_ms for each in description.subscriptions.values() if each.number == subscription]
        return periods[0] if periods else None

    # --- counts -----------------------------------------------------------------------------------------------------

    async def counts(self) -> Mapping[tuple[int, SubQueue], Counts]:
        """Return the counts of every channel that has messages, by subscription and sub-queue; those of fragments that
        do not answer are left out."""
        totals: dict[tuple[int, SubQueue], Counts] = {}
        for found in await self._counts_of_all():
            for place, counts in (found or {}).items():
                totals[place] = totals.get(place, Counts()).plus(counts)
        return totals

    async def fragments(self) -> list[FragmentStatus]:
        """Return the state and the counts of every fragment."""
        statuses = []
        for fragment, found in zip(self.all_fragments, await self._counts_of_all(), strict=True):
            total = Counts()
            for counts in (found or {}).values():
                total = total.plus(counts)
            state = FragmentState.UP if found is not None and not fragment.is_down else FragmentState.DOWN
            statuses.append(
                FragmentStatus(fragment.number, FragmentState.CLOSED if fragment.is_closed else state, total)
            )
        return statuses

    async def _counts_of_all(self) -> list[dict[tuple[int, SubQueue], Counts] | None]:
        """Return the counts of each fragment, asked at the same time: those of a lost node all wait as long."""
        try:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(self._counts_of(fragment)) for fragment in self.all_fragments]
        except ExceptionGroup as failures:
            # Callers handle an error of the database, not a group of them.
            raise failures.exceptions[0] from None
        return [task.result() for task in asked]

    async def _counts_of(self, fragment: Fragment) -> dict[tuple[int, SubQueue], Counts] | None:
        """Return the counts of the channels in a fragment; None if it does not answer."""
        if fragment.is_down:
            return None
        found: dict[tuple[int, SubQueue], Counts] = {}
        reader = fragment.reader
        rest = reader.span(COUNTERS, b"")
        try:
            while rest is not None:
                page = await reader.scan(rest, limit=1000)
                for key, value in page.entries:
                    number, sub_queue = parts_of_channel(key[-4:])
                    found[number, SubQueue(sub_queue)] = Counts(*decode_counters(value))
                following = page.rest(rest)
                if following is None:
                    break
                rest = following
        except StorageUnavailable:
            if self.is_partitioned:
                fragment.mark_down()
            return None
        return found


def _check_open(fragment: Fragment) -> None:
    if fragment.is_closed:
        raise _fragment_down()


def _fragment_down() -> MessagingRefused:
    return MessagingRefused(Failure.FRAGMENT_DOWN, "The fragment does not answer at present.")
