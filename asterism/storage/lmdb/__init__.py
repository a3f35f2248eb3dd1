"""The embedded engine: LMDB with group commit, and a write log in front of it."""

from __future__ import annotations

from asterism.storage.lmdb.engine import LmdbEngine
from asterism.storage.lmdb.environment import EngineStats
from asterism.storage.lmdb.log_commit import FoldPace

__all__ = ["EngineStats", "FoldPace", "LmdbEngine"]
