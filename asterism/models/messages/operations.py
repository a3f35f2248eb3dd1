"""Operations on the messages of a fragment: each says what it has to read, and adds its changes to a draft.

An operation is planned again whenever another process was faster, on what it then reads. It must therefore take its
decisions in `plan`, and raise a refusal before it has changed the draft.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from asterism.models.messages.draft import PRESENT, Draft
from asterism.models.messages.layout import LOCKS, MESSAGES, RETURNED, SESSION_LOCKS, STATES, pack_number, session_part
from asterism.models.messages.messages import (
    EXPIRED,
    Abandon,
    Action,
    Complete,
    DeadLetter,
    Defer,
    Failure,
    MessageState,
    MessagingRefused,
    Unlock,
    too_many_deliveries,
)
from asterism.models.messages.records import (
    Facts,
    StateRecord,
    StoredMessage,
    merge_overlay,
    pack_lock,
    pack_record,
    pack_state,
    stored_message,
    unpack_lock,
)
from asterism.models.messages.terms import ChannelTerms
from asterism.storage.contract import ExpectationFailed

if TYPE_CHECKING:
    from asterism.models.messages.locks import Lock
    from asterism.models.messages.sessions import SessionHold

Value = bytes | None

_GONE: Final = "The subscription was deleted."


class Operation:
    """A part of a batch that is planned, and fails, as a whole. The result is in `future` when it is durable."""

    # The data grows: refused when the entity is full.
    grows = False
    # The plan may have changed the draft before it is refused.
    is_composite = False

    def __init__(self, *, messages: int = 1, size: int = 0) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # Of the batch that the operation is put in.
        self.messages = messages
        self.size = size
        # Of how many batches that contained it another process was faster.
        self.overtaken = 0

    def keys(self, draft: Draft) -> Sequence[bytes]:  # noqa: ARG002 - most operations need not read
        """Return the keys whose values `plan` gets."""
        return ()

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        """Add the changes to the draft. Raises a refusal, or NextBatch, before the draft is changed."""
        raise NotImplementedError

    def result(self) -> Any:
        """Return the result of the operation, whose batch is durable."""
        return None

    def committed(self) -> None:
        """Take note that the operation is durable, before its caller does."""

    def ended(self) -> None:
        """Take note that the operation is durable, has failed or was withdrawn, before its caller does."""


def channel_terms(draft: Draft, channel: bytes) -> ChannelTerms:
    terms = draft.terms.channel(channel)
    if terms is None:
        raise MessagingRefused(Failure.NOT_ALLOWED, _GONE)
    return terms


# --- settlement -----------------------------------------------------------------------------------------------------


def settlement_keys(draft: Draft, terms: ChannelTerms, facts: Facts, action: Action) -> list[bytes]:
    """Return the keys whose values `settle` needs."""
    keys: list[bytes] = []
    if _needs_value(draft, terms, facts, action):
        keys.append(MESSAGES + draft.point + facts.channel + pack_number(facts.number))
    if facts.body is not None:
        keys.append(draft.references_key(facts.body))
    return keys


def _needs_value(draft: Draft, terms: ChannelTerms, facts: Facts, action: Action) -> bool:
    """Return whether the message itself is needed: it moves to the dead letters."""
    if isinstance(action, DeadLetter):
        return True
    if not isinstance(action, Abandon):
        return False
    if facts.expires_ms <= draft.now_ms:
        return terms.dead_letters_expired
    return _is_last(terms, facts)


def _is_last(terms: ChannelTerms, facts: Facts) -> bool:
    return terms.max_delivery_count is not None and facts.state.delivery_count + 1 >= terms.max_delivery_count


def settle(draft: Draft, terms: ChannelTerms, facts: Facts, action: Action, values: Iterator[Value]) -> None:
    """Carry an action out on a message under lock, with the values of `settlement_keys`."""
    value = next(values) if _needs_value(draft, terms, facts, action) else None
    if facts.body is not None:
        draft.know_references(facts.body, next(values))
    state = facts.state
    match action:
        case Complete():
            draft.remove(terms, facts)
        case Abandon(properties):
            if facts.expires_ms <= draft.now_ms:
                expire(draft, terms, facts, value)
                return
            count = state.delivery_count + 1
            if _is_last(terms, facts):
                letter = too_many_deliveries(count)
                draft.dead_letter(terms, facts, _present(draft, value), letter, delivery_count=count)
                return
            overlay = merge_overlay(state.overlay, properties)
            draft.change_state(terms, facts, StateRecord(state.state, count, overlay))
            _unlock(draft, terms, facts)
        case Defer(properties):
            overlay = merge_overlay(state.overlay, properties)
            draft.change_state(terms, facts, StateRecord(MessageState.DEFERRED, state.delivery_count, overlay))
            draft.unlock(facts)
        case DeadLetter():
            to = terms.transfer_dead_letters if action.is_transfer else None
            count = state.delivery_count
            draft.dead_letter(terms, facts, _present(draft, value), action, delivery_count=count, to=to)
        case Unlock():
            _unlock(draft, terms, facts)


def _unlock(draft: Draft, terms: ChannelTerms, facts: Facts) -> None:
    draft.unlock(facts)
    # A deferred message stays deferred.
    if facts.state.state is MessageState.ACTIVE:
        draft.give_back(terms, facts.number, facts.session_id)


def expire(draft: Draft, terms: ChannelTerms, facts: Facts, value: Value) -> None:
    """Drop a message that has expired, or move it to the dead letters, for which `value` is needed."""
    if terms.dead_letters_expired:
        draft.dead_letter(terms, facts, _present(draft, value), EXPIRED, delivery_count=facts.state.delivery_count)
    else:
        draft.remove(terms, facts)


def _present(draft: Draft, value: Value) -> bytes:
    """Return a message that was read; ExpectationFailed if another process has taken it away."""
    if value is None:
        assert draft.is_shared, "a message under lock is gone"
        raise ExpectationFailed(MESSAGES)
    return value


class LockKeeper(Protocol):
    """The owner of the locks that an operation settles."""

    def over(self, locks: Sequence[Lock]) -> None:
        """Forget locks that were settled, or were lost."""
        ...

    def kept(self, locks: Sequence[Lock]) -> None:
        """Take locks back whose settlement has failed."""
        ...


class Settle(Operation):
    """Settles messages under locks of this process. The result has a failure for each lock that was lost."""

    def __init__(
        self, channel: bytes, locks: Sequence[Lock], action: Action, keeper: LockKeeper, *, is_end: bool = False
    ) -> None:
        """`is_end`: the locks have ended, unless another process has renewed them."""
        super().__init__(messages=len(locks))
        self._is_end = is_end
        self._channel = channel
        self._keeper = keeper
        self._is_committed = False
        self.locks = locks
        self._action = action
        self._failures: list[Failure | None] = [None] * len(locks)
        for lock in locks:
            lock.is_settling = True

    def keys(self, draft: Draft) -> Sequence[bytes]:
        terms = channel_terms(draft, self._channel)
        keys: list[bytes] = []
        # The first attempt expects the locks to be there; later ones look.
        if self._looks:
            keys = [_lock_key(draft, lock) for lock in self.locks]
        if not isinstance(self._action, Complete):
            for lock in self.locks:
                keys += settlement_keys(draft, terms, lock.facts, self._action)
        else:
            keys += [draft.references_key(lock.facts.body) for lock in self.locks if lock.facts.body is not None]
        return keys

    @property
    def _looks(self) -> bool:
        return bool(self.overtaken) or self._is_end

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        terms = channel_terms(draft, self._channel)
        rest = iter(values)
        failures: list[Failure | None] = [None] * len(self.locks)
        if self._looks:
            failures = [self._failure(draft, lock, next(rest)) for lock in self.locks]
        self._failures = failures
        draft.touch_all(self._channel, [lock.facts.number for lock in self.locks])
        if isinstance(self._action, Complete) and not (self._looks or draft.is_shared):
            for lock in self.locks:
                if lock.facts.body is not None:
                    draft.know_references(lock.facts.body, next(rest))
            draft.remove_all(terms, [lock.facts for lock in self.locks])
            return
        holds: set[SessionHold] = set()
        for lock, failure in zip(self.locks, failures, strict=True):
            if failure is not None:
                # The values were read all the same.
                for _ in settlement_keys(draft, terms, lock.facts, self._action):
                    next(rest)
                continue
            if draft.is_shared:
                self._expect(draft, lock, holds)
            settle(draft, terms, lock.facts, self._action, rest)

    def _failure(self, draft: Draft, lock: Lock, stored: Value) -> Failure | None:
        if not draft.is_shared:
            return None
        if lock.hold is None:
            is_held = stored is not None and stored.startswith(lock.token)
            if is_held and self._is_end and stored is not None:
                is_held = unpack_lock(stored)[1] <= draft.now_ms
            return None if is_held else Failure.LOCK_LOST
        is_held = stored is not None and stored.startswith(lock.hold.token)
        return None if is_held else Failure.SESSION_LOCK_LOST

    def _expect(self, draft: Draft, lock: Lock, holds: set[SessionHold]) -> None:
        if lock.hold is None:
            value = pack_lock(lock.token, lock.until_ms) if self._is_end else lock.token
            draft.expect(_lock_key(draft, lock), value)
        elif lock.hold not in holds:
            holds.add(lock.hold)
            draft.expect(_lock_key(draft, lock), lock.hold.token)

    def result(self) -> list[Failure | None]:
        return self._failures

    def committed(self) -> None:
        self._is_committed = True
        self._keeper.over(self.locks)

    def ended(self) -> None:
        for lock in self.locks:
            lock.is_settling = False
        if not self._is_committed:
            self._keeper.kept(self.locks)


def _lock_key(draft: Draft, lock: Lock) -> bytes:
    facts = lock.facts
    if lock.hold is None:
        return LOCKS + draft.point + facts.channel + pack_number(facts.number)
    return session_lock_key(draft.point, facts.channel, lock.hold.session_id)


def session_lock_key(point: bytes, channel: bytes, session_id: str) -> bytes:
    return SESSION_LOCKS + point + channel + session_part(session_id)


# --- claims of several processes ------------------------------------------------------------------------------------


class Candidate:
    """A message to be claimed, with its lock as it was seen: None, or a lock that has ended."""

    __slots__ = ("lock_seen", "message", "state", "token")

    def __init__(self, message: StoredMessage, lock_seen: bytes | None, token: bytes) -> None:
        self.message = message
        self.lock_seen = lock_seen
        self.token = token
        # The state once it is claimed.
        self.state = message.facts.state


class Claim(Operation):
    """Locks messages where other processes may lock them too. The result are the candidates that got their lock."""

    def __init__(self, channel: bytes, candidates: Sequence[Candidate], until_ms: int, state: MessageState) -> None:
        super().__init__(messages=len(candidates))
        self._channel = channel
        self._candidates = candidates
        self._until_ms = until_ms
        self._state = state
        self._claimed: list[Candidate] = []

    def keys(self, draft: Draft) -> Sequence[bytes]:
        # The first attempt goes by what the caller has seen.
        if not self.overtaken:
            return ()
        return [
            family + draft.point + self._channel + pack_number(candidate.message.facts.number)
            for candidate in self._candidates
            for family in (LOCKS, MESSAGES, STATES)
        ]

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        terms = channel_terms(draft, self._channel)
        candidates = self._candidates
        if self.overtaken:
            found = [self._seen_again(draft, *each) for each in zip(candidates, *[iter(values)] * 3, strict=True)]
            candidates = [candidate for candidate in found if candidate is not None]
        for candidate in candidates:
            draft.touch(self._channel, candidate.message.facts.number)
        self._claimed = [candidate for candidate in candidates if self._claims(draft, terms, candidate)]

    def _seen_again(
        self, draft: Draft, candidate: Candidate, lock: Value, message: Value, state: Value
    ) -> Candidate | None:
        """Return the candidate as it is now; None if it is gone, under lock or in another state."""
        if message is None or (lock is not None and unpack_lock(lock)[1] > draft.now_ms):
            return None
        found = stored_message(self._channel, candidate.message.facts.number, message, state)
        if found.facts.state.state is not self._state:
            return None
        if found.facts.body is not None:
            # The content has been read before, and never changes.
            found.record = found.record._replace(content=candidate.message.record.content)
        candidate.message, candidate.lock_seen = found, lock
        return candidate

    def _claims(self, draft: Draft, terms: ChannelTerms, candidate: Candidate) -> bool:
        facts = candidate.message.facts
        place = draft.point + self._channel + pack_number(facts.number)
        draft.expect(LOCKS + place, candidate.lock_seen)
        draft.expect(MESSAGES + place, PRESENT)
        draft.expect(STATES + place, pack_state(facts.state) if facts.has_state else None)
        candidate.state = facts.state
        if candidate.lock_seen is not None:
            # The lock of a receiver has ended: its delivery has failed.
            state = facts.state._replace(delivery_count=facts.state.delivery_count + 1)
            if _is_last(terms, facts):
                value = pack_record(candidate.message.record)
                letter = too_many_deliveries(state.delivery_count)
                draft.dead_letter(terms, facts, value, letter, delivery_count=state.delivery_count)
                return False
            draft.change_state(terms, facts, state)
            candidate.state = state
        draft.batch.puts.append((LOCKS + place, pack_lock(candidate.token, self._until_ms)))
        draft.batch.deletes.append(RETURNED + place)
        return True

    def result(self) -> list[Candidate]:
        return self._claimed


class RenewStored(Operation):
    """Moves the ends of stored locks. The result has a failure for each lock that was lost."""

    def __init__(self, locks: Sequence[Lock], until_ms: int) -> None:
        super().__init__(messages=len(locks))
        self._locks = locks
        self._until_ms = until_ms
        self._failures: list[Failure | None] = []

    def keys(self, draft: Draft) -> Sequence[bytes]:
        return [_lock_key(draft, lock) for lock in self._locks]

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        for lock in self._locks:
            draft.touch(lock.facts.channel, lock.facts.number)
        self._failures = []
        for lock, stored in zip(self._locks, values, strict=True):
            is_held = stored is not None and stored.startswith(lock.token)
            self._failures.append(None if is_held else Failure.LOCK_LOST)
            if is_held:
                key = _lock_key(draft, lock)
                draft.expect(key, lock.token)
                draft.batch.puts.append((key, pack_lock(lock.token, self._until_ms)))

    def result(self) -> list[Failure | None]:
        return self._failures


class Composite(Operation):
    """Operations of a transaction: they are applied together, or none of them is."""

    is_composite = True

    def __init__(self, parts: Sequence[Operation]) -> None:
        super().__init__(messages=sum(part.messages for part in parts), size=sum(part.size for part in parts))
        self._parts = parts
        self.grows = any(part.grows for part in parts)
        self._lengths: list[int] = []

    def keys(self, draft: Draft) -> Sequence[bytes]:
        keys: list[bytes] = []
        self._lengths = []
        for part in self._parts:
            part.overtaken = self.overtaken
            wanted = part.keys(draft)
            self._lengths.append(len(wanted))
            keys += wanted
        return keys

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        at = 0
        for part, length in zip(self._parts, self._lengths, strict=True):
            part.plan(draft, values[at : at + length])
            at += length
            failure = next(iter([each for each in _failures_of(part) if each is not None]), None)
            if failure is not None:
                raise MessagingRefused(failure, "A lock of the transaction was lost.")

    def committed(self) -> None:
        for part in self._parts:
            part.committed()

    def ended(self) -> None:
        for part in self._parts:
            part.ended()

    def result(self) -> list[Any]:
        return [part.result() for part in self._parts]


def _failures_of(part: Operation) -> Sequence[Failure | None]:
    return part.result() if isinstance(part, Settle) else ()
