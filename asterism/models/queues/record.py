"""The record of a queue: its generation, when it was created, its metadata and its access policies."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from asterism.errors import StoredDamage
from asterism.models.queues.layout import GENERATION_BYTES
from asterism.values.json.text import dumps, loads_stored

_FORMAT: Final = 1
# The generation comes first: changes of messages expect a record that begins with it.
_HEADER = struct.Struct(f">{GENERATION_BYTES}sBQ")


@dataclass(frozen=True, slots=True)
class QueueRecord:
    generation: bytes
    created_at: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    # As the protocol writes it; empty if there are none.
    policies: str = ""

    def to_bytes(self) -> bytes:
        described: dict[str, Any] = {"metadata": dict(self.metadata)}
        if self.policies:
            described["policies"] = self.policies
        return _HEADER.pack(self.generation, _FORMAT, self.created_at) + dumps(described)

    @classmethod
    def from_bytes(cls, stored: bytes) -> QueueRecord:
        try:
            generation, form, created_at = _HEADER.unpack_from(stored)
        except struct.error:
            raise StoredDamage(what="queue record") from None
        if form != _FORMAT:
            raise StoredDamage(what="queue record")
        described = cast("dict[str, Any]", loads_stored(stored[_HEADER.size :]))
        return cls(generation, created_at, described["metadata"], described.get("policies", ""))
