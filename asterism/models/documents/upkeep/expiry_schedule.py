"""The times at which the next items expire: written by writes, read by the removal of expired items."""

from __future__ import annotations

from collections.abc import Callable


class ExpirySchedule:
    """Per keyspace, the earliest second at which an item may be due. Every write that can expire notes its own."""

    __slots__ = ("due_at", "on_earlier")

    def __init__(self) -> None:
        self.due_at: dict[bytes, int] = {}
        # Called when a keyspace is due earlier than it was; set by the sweeper.
        self.on_earlier: Callable[[], None] | None = None

    def notice(self, keyspace_rid: bytes, expires_at: int | None) -> None:
        if expires_at is None:
            return
        known = self.due_at.get(keyspace_rid)
        if known is None or expires_at < known:
            self.due_at[keyspace_rid] = expires_at
            if self.on_earlier is not None:
                self.on_earlier()

    def take_due(self, *, now: float) -> list[bytes]:
        """Return the keyspaces with items due, and forget them: their sweep notes when they are due next."""
        due = [rid for rid, at in self.due_at.items() if at <= now]
        for rid in due:
            del self.due_at[rid]
        return due

    def next_at(self) -> int | None:
        return min(self.due_at.values(), default=None)
