"""A change that waits for its group, and the future of its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from asterism.storage.contract import StorageRefusal
from asterism.storage.lmdb.write_views import WriteView


class PendingChange:
    __slots__ = ("change", "future", "has_freed_pages", "refusal", "result")

    def __init__(self, change: Callable[[WriteView], Any], future: asyncio.Future[Any]) -> None:
        self.change = change
        self.future = future
        # All pages that were freed before are free for it: no other try can find more room.
        self.has_freed_pages = False
        self.result: Any = None
        self.refusal: StorageRefusal | None = None

    def carry_out(self, view: WriteView) -> None:
        self.result = self.refusal = None
        try:
            self.result = self.change(view)
        except StorageRefusal as refusal:
            self.refusal = refusal

    def resolve(self) -> None:
        # The caller was canceled.
        if self.future.done():
            return
        if self.refusal is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.refusal)

    def fail(self, refusal: StorageRefusal) -> None:
        # Each caller raises an exception of its own; a shared one would collect all their tracebacks.
        self.refusal = type(refusal)(*refusal.args)
        self.resolve()
