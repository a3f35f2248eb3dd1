"""The engine without a disk: for tests, and for servers that are thrown away."""

from __future__ import annotations

from asterism.storage.memory.engine import MemoryEngine
from asterism.storage.memory.store import MemoryStore

__all__ = ["MemoryEngine", "MemoryStore"]
