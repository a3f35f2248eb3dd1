"""The last use of entities that are deleted when they are idle, where other processes serve them too."""

from __future__ import annotations

from collections.abc import Sequence

from asterism.models.messages.draft import Draft
from asterism.models.messages.layout import ACTIVITY, channel_of, pack_number
from asterism.models.messages.messages import SubQueue
from asterism.models.messages.operations import Operation, Value


def activity_key(point: bytes, subscription: int) -> bytes:
    return ACTIVITY + point + channel_of(subscription, SubQueue.MAIN)


class NoteUse(Operation):
    """Stores the moment of a use; a later one that was stored stays."""

    def __init__(self, subscription: int, moment_ms: int) -> None:
        super().__init__()
        self._subscription = subscription
        self._moment_ms = moment_ms

    def keys(self, draft: Draft) -> Sequence[bytes]:
        return [activity_key(draft.point, self._subscription)]

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        (stored,) = values
        if stored is None or stored < pack_number(self._moment_ms):
            key = activity_key(draft.point, self._subscription)
            draft.touch(key, 0)
            draft.batch.puts.append((key, pack_number(self._moment_ms)))
