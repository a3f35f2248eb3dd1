"""Sending: new messages of a queue or topic, the copies that enter subscriptions, and scheduled ones that are due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from asterism.models.messages.draft import COPIED_BYTES_MAX, Draft, NextBatch
from asterism.models.messages.layout import (
    ACTIVATION,
    DUPLICATES,
    DUPLICATES_DUE,
    FORWARDED,
    MESSAGES,
    NEVER,
    STATES,
    channel_of,
    due_key,
    duplicate_digest,
    pack_number,
    shown_number,
)
from asterism.models.messages.messages import (
    NO_SESSION,
    DeadLetter,
    Failure,
    MessageState,
    MessagingRefused,
    NewMessage,
    SubQueue,
)
from asterism.models.messages.operations import Operation, Value, channel_terms
from asterism.models.messages.records import (
    DEFAULT_STATE,
    BodyPlace,
    MessageRecord,
    StateRecord,
    pack_duplicate,
    pack_overlay,
    pack_record,
    stored_message,
    ttl_of,
    unpack_duplicate,
)
from asterism.models.messages.rules import Envelope, FilterFailed
from asterism.models.messages.terms import ChannelTerms, EntityTerms, SubscriptionTerms
from asterism.storage.contract import Expectation
from asterism.values.amqp.message import Message
from asterism.values.amqp.types import InvalidAmqp

_OWN_CHANNEL: Final = channel_of(0, SubQueue.MAIN)
_FILTER_FAILED: Final = "FilterEvaluationException"


class Send(Operation):
    """Adds messages; the result are their numbers. A duplicate has the number of the message that it repeats, and so
    has a message that was forwarded here before; 0 if that number is not known."""

    grows = True

    def __init__(self, messages: Sequence[NewMessage], *, marks: Sequence[bytes] = (), moment_ms: int = 0) -> None:
        """`marks` are the sources of forwarded messages, one for each, and `moment_ms` the time of forwarding."""
        super().__init__(messages=len(messages), size=sum(len(message.content) for message in messages))
        self._messages = messages
        self._marks = marks
        self._moment_ms = moment_ms
        self._numbers: list[int] = []

    def keys(self, draft: Draft) -> Sequence[bytes]:
        keys = [FORWARDED + draft.point + mark for mark in self._marks]
        if draft.terms.duplicate_window_ms:
            digests = [duplicate_digest(message.message_id) for message in self._messages if message.message_id]
            keys += [DUPLICATES + draft.point + digest for digest in digests]
        return keys

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        terms = draft.terms
        if not terms.may_send:
            raise MessagingRefused(Failure.ENTITY_DISABLED, "The entity does not accept messages.")
        own = channel_terms(draft, _OWN_CHANNEL)
        if own.requires_session and any(message.session_id is None for message in self._messages):
            raise MessagingRefused(Failure.NOT_ALLOWED, "The entity requires a session id in every message.")
        if draft.forgotten_digests and terms.duplicate_window_ms:
            digests = {duplicate_digest(message.message_id) for message in self._messages}
            if not digests.isdisjoint(draft.forgotten_digests):
                raise NextBatch
        marks, found = values[: len(self._marks)], iter(values[len(self._marks) :])
        self._numbers = []
        for place, message in enumerate(self._messages):
            is_checked = bool(terms.duplicate_window_ms and message.message_id)
            stored = next(found) if is_checked else None
            if self._marks:
                if marks[place] is not None:
                    self._numbers.append(0)
                    continue
                key = FORWARDED + draft.point + self._marks[place]
                draft.expect(key, None)
                draft.batch.puts.append((key, pack_number(self._moment_ms)))
            number = self._repeated(draft, message, stored) if is_checked else None
            if number is None:
                number = draft.take_number()
                if is_checked:
                    self._remember(draft, message, number)
                enter(draft, own, message, number)
            self._numbers.append(number)

    def _repeated(self, draft: Draft, message: NewMessage, stored: Value) -> int | None:
        """Return the number of the message that this one repeats; None if it is new."""
        digest = duplicate_digest(message.message_id)
        if digest in draft.seen_digests:
            return draft.seen_digests[digest]
        key = DUPLICATES + draft.point + digest
        if stored is not None:
            until_ms, number = unpack_duplicate(stored)
            if until_ms > draft.now_ms:
                return number
            draft.batch.deletes.append(DUPLICATES_DUE + draft.point + pack_number(until_ms) + digest)
        draft.expect(key, stored)
        return None

    def _remember(self, draft: Draft, message: NewMessage, number: int) -> None:
        digest = duplicate_digest(message.message_id)
        draft.seen_digests[digest] = number
        until_ms = draft.now_ms + draft.terms.duplicate_window_ms
        puts = draft.batch.puts
        puts.append((DUPLICATES + draft.point + digest, pack_duplicate(until_ms, number)))
        puts.append((DUPLICATES_DUE + draft.point + pack_number(until_ms) + digest, b""))

    def result(self) -> list[int]:
        return self._numbers


def enter(draft: Draft, own: ChannelTerms, message: NewMessage, number: int) -> None:
    """Add a new message to the entity: to the queue, or to the subscriptions of the topic; or schedule it."""
    now_ms = draft.now_ms
    scheduled_ms = message.scheduled_ms or 0
    is_scheduled = scheduled_ms > now_ms
    expires_ms = own.expiry(scheduled_ms if is_scheduled else now_ms, message.ttl_ms)
    # As `MessageRecord(…)` makes it, without the function in Python that this calls.
    record = tuple.__new__(
        MessageRecord,
        (
            now_ms,
            expires_ms,
            scheduled_ms,
            message.enqueued_sequence_number or 0,
            message.hops,
            message.message_id,
            message.session_id,
            message.partition_key,
            message.dead_letter_source,
            message.content,
            None,
        ),
    )
    state = DEFAULT_STATE
    if message.overlay:
        state = StateRecord(MessageState.ACTIVE, 0, pack_overlay(message.overlay))
    if is_scheduled:
        state = StateRecord(MessageState.SCHEDULED, 0, state.overlay)
        draft.put_activation(scheduled_ms, own.channel, number)
    elif draft.terms.subscriptions is not None:
        publish(draft, record, number, state, is_fresh=True)
        return
    draft.put(own, number, pack_record(record), expires_ms=expires_ms, session_id=message.session_id, state=state)


# --- topics ---------------------------------------------------------------------------------------------------------


class _Copy:
    """A copy of a message that enters a subscription."""

    __slots__ = ("content", "letter", "subscription")

    def __init__(self, subscription: SubscriptionTerms, content: bytes | None, letter: DeadLetter | None) -> None:
        self.subscription = subscription
        # None: as the message is.
        self.content = content
        # The reason why it enters the dead letters instead.
        self.letter = letter


def publish(draft: Draft, record: MessageRecord, number: int, state: StateRecord, *, is_fresh: bool) -> None:
    """Add the copies of a message to the subscriptions whose rules select it. `is_fresh`: the number is a new one."""
    copies = select_copies(draft.terms, record, shown_number_of(draft, number))
    body: BodyPlace | None = None
    plain = sum(copy.content is None for copy in copies)
    if plain > 1 and plain * len(record.content) > COPIED_BYTES_MAX:
        body = draft.put_body(number, record.content, plain)
    # Most subscriptions have the same terms, and so do their copies.
    packed: dict[int, tuple[MessageRecord, bytes]] = {}
    for copy in copies:
        terms = copy.subscription.main
        expires_ms = terms.expiry(max(record.enqueued_ms, record.scheduled_ms), ttl_of(record))
        if copy.content is not None:
            own_number = draft.take_number()
            changed = record._replace(content=copy.content, expires_ms=expires_ms)
            _put_copy(draft, terms, own_number, changed, pack_record(changed), state, copy.letter, is_fresh=True)
            continue
        known = packed.get(expires_ms)
        if known is None:
            shared = record._replace(expires_ms=expires_ms, body=body)
            known = packed[expires_ms] = shared, pack_record(shared)
        _put_copy(draft, terms, number, *known, state, copy.letter, is_fresh=is_fresh)


def _put_copy(
    draft: Draft,
    terms: ChannelTerms,
    number: int,
    record: MessageRecord,
    value: bytes,
    state: StateRecord,
    letter: DeadLetter | None,
    *,
    is_fresh: bool,
) -> None:
    if letter is None and terms.requires_session and record.session_id is None:
        letter = NO_SESSION
    if letter is not None:
        draft.put_dead_letter(terms, number, record, letter)
        return
    draft.put(
        terms,
        number,
        value,
        expires_ms=record.expires_ms,
        session_id=record.session_id,
        state=state,
        is_fresh=is_fresh,
    )


def select_copies(terms: EntityTerms, record: MessageRecord, shown: int) -> list[_Copy]:
    """Return the copies of a message that enter the subscriptions of its topic."""
    copies: list[_Copy] = []
    parsed: tuple[Message, Envelope] | None = None
    for subscription in terms.subscriptions or ():
        if subscription.rules is None:
            copies.append(_Copy(subscription, None, None))
            continue
        try:
            if parsed is None:
                parsed = Message.parse(record.content), _envelope(record, shown)
            copies += [_Copy(subscription, content, None) for content in subscription.rules.select(*parsed)]
        except (FilterFailed, InvalidAmqp) as failed:
            if subscription.dead_letters_filter_errors:
                reason = failed.reason if isinstance(failed, FilterFailed) else str(failed)
                copies.append(_Copy(subscription, None, DeadLetter(_FILTER_FAILED, reason)))
    return copies


def _envelope(record: MessageRecord, shown: int) -> Envelope:
    return Envelope(
        sequence_number=shown,
        enqueued_ms=record.enqueued_ms,
        expires_ms=None if record.expires_ms == NEVER else record.expires_ms,
        scheduled_ms=record.scheduled_ms or None,
        message_id=record.message_id,
        session_id=record.session_id,
        partition_key=record.partition_key,
        enqueued_sequence_number=record.original or None,
        dead_letter_source=record.dead_letter_source,
        ttl_ms=ttl_of(record),
    )


def shown_number_of(draft: Draft, number: int) -> int:
    return shown_number(draft.fragment, number, is_partitioned=draft.terms.description.is_partitioned)


# --- scheduled messages ---------------------------------------------------------------------------------------------


class _OfScheduled(Operation):
    """An operation on scheduled messages of the entity's own channel."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(messages=len(numbers))
        self._numbers = numbers

    def keys(self, draft: Draft) -> Sequence[bytes]:
        return [
            family + draft.point + _OWN_CHANNEL + pack_number(number)
            for number in self._numbers
            for family in (MESSAGES, STATES)
        ]


class CancelScheduled(_OfScheduled):
    """Removes scheduled messages; refused as a whole if one of them is not there."""

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        own = channel_terms(draft, _OWN_CHANNEL)
        found = []
        for number, value, state in zip(self._numbers, values[::2], values[1::2], strict=True):
            message = None if value is None else stored_message(_OWN_CHANNEL, number, value, state)
            if message is None or message.facts.state.state is not MessageState.SCHEDULED:
                raise MessagingRefused(Failure.MESSAGE_NOT_FOUND, "There is no scheduled message of this number.")
            found.append((message, state))
        for message, _ in found:
            draft.touch(_OWN_CHANNEL, message.facts.number)
        for message, state in found:
            place = draft.point + _OWN_CHANNEL + pack_number(message.facts.number)
            draft.expect(STATES + place, state)
            draft.delete_activation(message.record.scheduled_ms, _OWN_CHANNEL, message.facts.number)
            draft.remove(own, message.facts)


class Activate(_OfScheduled):
    """Makes scheduled messages active whose moment has come. They keep their numbers."""

    grows = True

    def __init__(self, due: Sequence[tuple[int, int]]) -> None:
        """`due` are moments and numbers, as the due entries have them."""
        super().__init__([number for _, number in due])
        self._due = due

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        own = channel_terms(draft, _OWN_CHANNEL)
        for _, number in self._due:
            draft.touch(_OWN_CHANNEL, number)
        for (moment_ms, number), value, state in zip(self._due, values[::2], values[1::2], strict=True):
            # The entry is expected: no other process has done it, nor was the message canceled.
            key = due_key(draft.point, moment_ms, ACTIVATION, _OWN_CHANNEL, number)
            message = None if value is None else stored_message(_OWN_CHANNEL, number, value, state)
            if message is None or value is None or message.facts.state.state is not MessageState.SCHEDULED:
                draft.batch.deletes.append(key)
                continue
            if draft.is_shared:
                draft.batch.expectations.append(Expectation(key, b""))
            draft.batch.deletes.append(key)
            self._activate(draft, own, number, message.record._replace(enqueued_ms=moment_ms), state)

    def _activate(
        self, draft: Draft, own: ChannelTerms, number: int, record: MessageRecord, stored_state: Value
    ) -> None:
        before = stored_message(_OWN_CHANNEL, number, pack_record(record), stored_state)
        overlay = before.facts.state.overlay
        state = StateRecord(MessageState.ACTIVE, 0, overlay) if overlay else DEFAULT_STATE
        if draft.terms.subscriptions is not None:
            draft.remove(own, before.facts)
            publish(draft, record, number, state, is_fresh=False)
            return
        draft.become_active(own, before.facts, pack_record(record), state)


class DropMarks(Operation):
    """Removes the marks of messages whose forwarding is complete."""

    def __init__(self, marks: Sequence[bytes]) -> None:
        super().__init__(messages=len(marks))
        self._marks = marks

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:  # noqa: ARG002 - the promise of `Operation`
        draft.batch.deletes += [FORWARDED + draft.point + mark for mark in self._marks]
