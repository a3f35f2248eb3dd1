"""The embedded engine: LMDB with group commit."""

from __future__ import annotations

from asterism.storage.lmdb.engine import LmdbEngine
from asterism.storage.lmdb.environment import EngineStats

__all__ = ["EngineStats", "LmdbEngine"]
