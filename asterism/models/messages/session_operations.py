"""Operations on sessions: their locks, where other processes serve the entity too, and their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from asterism.models.messages.draft import Draft
from asterism.models.messages.layout import SESSIONS, session_part
from asterism.models.messages.locks import Lock
from asterism.models.messages.messages import Action, Failure, MessagingRefused
from asterism.models.messages.operations import (
    Operation,
    Value,
    channel_terms,
    session_lock_key,
    settle,
    settlement_keys,
)
from asterism.models.messages.records import (
    SessionRecord,
    pack_session,
    pack_session_lock,
    unpack_session_lock,
)

if TYPE_CHECKING:
    from asterism.models.messages.sessions import SessionHold


class LockSession(Operation):
    """Takes the lock of a session, or moves its end; the result is False if another receiver has it.

    Alone, the memory of the process decides, and nothing is written.
    """

    def __init__(self, channel: bytes, session_id: str, token: bytes, until_ms: int, *, is_renewal: bool) -> None:
        super().__init__()
        self._channel = channel
        self._session_id = session_id
        self._token = token
        self._until_ms = until_ms
        self._is_renewal = is_renewal
        self._is_locked = False

    def keys(self, draft: Draft) -> Sequence[bytes]:
        return [session_lock_key(draft.point, self._channel, self._session_id)]

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        (stored,) = values
        is_own = stored is not None and stored.startswith(self._token)
        is_free = stored is None or unpack_session_lock(stored)[1] <= draft.now_ms
        self._is_locked = is_own if self._is_renewal else is_free
        if self._is_locked:
            (key,) = self.keys(draft)
            draft.touch(key, 0)
            draft.expect(key, stored)
            draft.batch.puts.append((key, pack_session_lock(self._token, self._until_ms)))

    def result(self) -> bool:
        return self._is_locked


class EndSession(Operation):
    """Ends the hold of a session: its message locks end with an action, and its stored lock is removed."""

    def __init__(self, channel: bytes, hold: SessionHold, action: Action) -> None:
        super().__init__(messages=1 + len(hold.locks))
        self._channel = channel
        self._hold = hold
        self._action = action
        self._locks: list[Lock] = []

    def keys(self, draft: Draft) -> Sequence[bytes]:
        # Those that are being settled are in this batch or an earlier one.
        self._locks = [lock for lock in self._hold.locks if not lock.is_settling]
        terms = channel_terms(draft, self._channel)
        keys = [key for lock in self._locks for key in settlement_keys(draft, terms, lock.facts, self._action)]
        return [session_lock_key(draft.point, self._channel, self._hold.session_id), *keys]

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        terms = channel_terms(draft, self._channel)
        key = session_lock_key(draft.point, self._channel, self._hold.session_id)
        stored = values[0]
        if draft.is_shared:
            if stored is None or not stored.startswith(self._hold.token):
                # Another process has taken the session over, and decides on its messages.
                return
            draft.touch(key, 0)
            draft.expect(key, self._hold.token)
            draft.batch.deletes.append(key)
        rest = iter(values[1:])
        for lock in self._locks:
            draft.touch(self._channel, lock.facts.number)
        for lock in self._locks:
            settle(draft, terms, lock.facts, self._action, rest)


class SetSessionState(Operation):
    """Stores or clears the state of a session that a receiver holds."""

    grows = True

    def __init__(self, channel: bytes, session_id: str, state: bytes | None) -> None:
        super().__init__(size=len(state or b""))
        self._channel = channel
        self._session_id = session_id
        self._state = state

    def keys(self, draft: Draft) -> Sequence[bytes]:
        return [
            SESSIONS + draft.point + self._channel + session_part(self._session_id),
            session_lock_key(draft.point, self._channel, self._session_id),
        ]

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        before, lock = values
        key, lock_key = self.keys(draft)
        if draft.is_shared:
            if lock is None or unpack_session_lock(lock)[1] <= draft.now_ms:
                raise MessagingRefused(Failure.SESSION_LOCK_LOST, "No receiver holds the session.")
            draft.expect(lock_key, lock)
        draft.touch(key, 0)
        draft.expect(key, before)
        draft.bytes_delta -= len(before or b"")
        if self._state is None:
            draft.batch.deletes.append(key)
            return
        value = pack_session(SessionRecord(draft.now_ms, self._session_id, self._state))
        draft.bytes_delta += len(value)
        draft.batch.puts.append((key, value))
