"""Forwarding: messages that move on to another entity of the namespace, each exactly once (M9).

A mover takes messages as a receiver does, and sends them with a mark of their source, which the target's batch expects
to be absent. Then it completes the source, and then it removes the mark. After a crash at any step the message is taken
again: where its mark is there, it is only completed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from asterism.errors import AsterismError, ResourceNotFound
from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import parts_of_channel, place_of_number, source_of
from asterism.models.messages.messages import (
    COMPLETE,
    TOO_MANY_HOPS,
    UNLOCK,
    Action,
    DeadLetter,
    Failure,
    MessagingRefused,
    NewMessage,
    Received,
    SubQueue,
)
from asterism.models.messages.sending import DropMarks, Send

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel
    from asterism.models.messages.entity import Entity

_log = logging.getLogger(__name__)

# The service forwards a message at most so often (contract G).
HOPS_MAX: Final = 4
_MESSAGES_AT_ONCE: Final = 200
_WAIT_SECONDS_MIN: Final = 0.5
_WAIT_SECONDS_MAX: Final = 30.0
# How often it is looked whether messages that other processes have under lock are free.
_LOCKED_SECONDS: Final = 5.0
# The target does not take the message now, and may later; everything else is for an operator to see.
_PASSING: Final = frozenset({Failure.ENTITY_FULL, Failure.FRAGMENT_DOWN})

# Names a step that was carried out: tests end the process there.
OnStep = Callable[[str], None]


class Forwarder:
    """The movers of a process: one for each channel that has something to forward."""

    def __init__(self, find: Callable[[str, str], Entity | None], *, on_step: OnStep = lambda _: None) -> None:
        """`find` returns an entity by its namespace and name."""
        self._find = find
        self.on_step = on_step
        # Channels that are at work, and if there is news for them.
        self._working: dict[tuple[Entity, bytes], bool] = {}

    def wake(self, entity: Entity, channels: Iterable[bytes]) -> None:
        """Forward what has come to channels of an entity, those that forward."""
        for channel in entity.terms.forwarding.intersection(channels):
            place = entity, channel
            is_idle = place not in self._working
            self._working[place] = True
            if is_idle:
                entity.services.spawn(self._run(entity, channel))

    def wake_all(self, entity: Entity) -> None:
        self.wake(entity, entity.terms.forwarding)

    async def _run(self, entity: Entity, key: bytes) -> None:
        place = entity, key
        channel = entity.channel_at(key)
        wait_seconds = _WAIT_SECONDS_MIN
        try:
            while self._working[place] and not entity.is_gone:
                self._working[place] = False
                try:
                    is_passing = await self._forward_all(channel)
                except (ResourceNotFound, MessagingRefused):
                    return
                except AsterismError as problem:
                    _log.warning("forwarding from %s goes on later: %s", channel.path, problem)
                    is_passing = True
                if is_passing:
                    self._working[place] = True
                    await asyncio.sleep(wait_seconds)
                    wait_seconds = min(2 * wait_seconds, _WAIT_SECONDS_MAX)
                else:
                    wait_seconds = _WAIT_SECONDS_MIN
            if channel.is_shared and not entity.is_gone and await _has_messages(channel):
                # Another process has them under lock: if it is gone, its locks end, and nothing says so.
                asyncio.get_running_loop().call_later(_LOCKED_SECONDS, self._look_again, entity, key)
        finally:
            del self._working[place]

    def _look_again(self, entity: Entity, key: bytes) -> None:
        if not entity.is_gone and not entity.services.is_stopped:
            self.wake(entity, (key,))

    async def _forward_all(self, channel: Channel) -> bool:
        """Forward until nothing is left; return True if a target does not take messages at present."""
        if channel.is_shared:
            await channel.poller.look()
        while channel.terms.forward_to is not None and not channel.requires_session:
            messages = await channel.receivers.receive(_MESSAGES_AT_ONCE, lock=True, wait=False)
            if not messages:
                return False
            self.on_step("claimed")
            if not await self._forward(channel, messages):
                return True
        return False

    async def _forward(self, channel: Channel, messages: Sequence[Received]) -> bool:
        """Return False if the messages were given back: the target does not take them at present."""
        target_name = _name_of(channel.terms.forward_to or "")
        target = self._find(channel.entity.namespace, target_name)
        if target is None or target.is_gone:
            reason = DeadLetter(
                "MessagingEntityNotFound", f"The target '{target_name}' does not exist.", is_transfer=True
            )
            await _settle(channel, messages, reason)
            return True
        groups: dict[Fragment, list[tuple[Received, NewMessage, bytes]]] = {}
        for received in messages:
            if received.hops >= HOPS_MAX:
                is_main = channel.sub_queue is SubQueue.MAIN
                await _settle(channel, [received], TOO_MANY_HOPS if is_main else _as_transfer(TOO_MANY_HOPS))
                continue
            forwarded = _forwarded(channel, received)
            mark = _mark_of(channel, received)
            try:
                fragment = target.fragment_for([forwarded], None) or _fragment_of_mark(target, mark)
            except MessagingRefused as refused:
                await _settle(channel, [received], _refusal(refused))
                continue
            groups.setdefault(fragment, []).append((received, forwarded, mark))
        is_through = True
        for fragment, group in groups.items():
            is_through = await self._send(channel, fragment, group) and is_through
        return is_through

    async def _send(
        self, channel: Channel, fragment: Fragment, group: Sequence[tuple[Received, NewMessage, bytes]]
    ) -> bool:
        messages = [received for received, _, _ in group]
        marks = [mark for _, _, mark in group]
        send = Send([forwarded for _, forwarded, _ in group], marks=marks, moment_ms=channel.entity.services.now_ms())
        try:
            if not fragment.is_up:
                raise MessagingRefused(Failure.FRAGMENT_DOWN)
            await fragment.writer.submit(send)
        except MessagingRefused as refused:
            if refused.failure in _PASSING:
                await _settle(channel, messages, UNLOCK)
                return False
            if len(group) == 1:
                await _settle(channel, messages, _refusal(refused))
                return True
            # A single message may be at fault.
            results = [await self._send(channel, fragment, [each]) for each in group]
            return all(results)
        except AsterismError:
            await _settle(channel, messages, UNLOCK)
            raise
        self.on_step("sent")
        failures = await _settle(channel, messages, COMPLETE)
        self.on_step("completed")
        done = [mark for mark, failure in zip(marks, failures, strict=True) if failure is None]
        # Another process may hold an older lock of a source: the marks are then left until all locks have ended.
        if done and not channel.is_shared:
            await fragment.writer.submit(DropMarks(done))
        return True


async def _has_messages(channel: Channel) -> bool:
    number, sub_queue = parts_of_channel(channel.channel)
    counts = (await channel.entity.counts()).get((number, SubQueue(sub_queue)))
    return counts is not None and counts.active > 0


async def _settle(channel: Channel, messages: Sequence[Received], action: Action) -> list[Failure | None]:
    tokens = [received.lock_token for received in messages if received.lock_token is not None]
    return await channel.settle(tokens, action)


def _as_transfer(letter: DeadLetter) -> DeadLetter:
    return DeadLetter(letter.reason, letter.description, is_transfer=True)


def _refusal(refused: MessagingRefused) -> DeadLetter:
    reason = "MessagingEntityDisabled" if refused.failure is Failure.ENTITY_DISABLED else "TransferRefused"
    return DeadLetter(reason, refused.reason, is_transfer=True)


def _name_of(target: str) -> str:
    """Return the name of an entity that may be given as an address."""
    _, is_address, rest = target.partition("://")
    return (rest.partition("/")[2] if is_address else target).strip("/")


def _forwarded(channel: Channel, received: Received) -> NewMessage:
    source = received.dead_letter_source
    if source is None and channel.sub_queue is SubQueue.DEAD_LETTER:
        source = channel.path.removesuffix("/$DeadLetterQueue")
    ttl_ms = None if received.expires_ms is None else received.expires_ms - received.enqueued_ms
    return NewMessage(
        received.content,
        message_id=received.message_id,
        session_id=received.session_id,
        partition_key=received.partition_key,
        ttl_ms=ttl_ms,
        scheduled_ms=received.scheduled_ms,
        enqueued_sequence_number=received.enqueued_sequence_number or received.sequence_number,
        dead_letter_source=source,
        hops=received.hops + 1,
        overlay=received.overlay,
    )


def _mark_of(channel: Channel, received: Received) -> bytes:
    _, number = place_of_number(received.sequence_number)
    return source_of(channel.entity.keyspace.record.rid, received.fragment, channel.channel, number)


def _fragment_of_mark(target: Entity, mark: bytes) -> Fragment:
    """Return the fragment for a message without a key: always the same, where its mark is found again."""
    fragments = target.all_fragments
    return fragments[int.from_bytes(hashlib.blake2b(mark, digest_size=4).digest(), "big") % len(fragments)]
