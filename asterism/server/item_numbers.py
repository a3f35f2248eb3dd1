"""Numbers for items that no other start of the server has given or will give.

A number has 60 bits: 24 for the start of the server that gave it, 36 for its place among those given since.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable

from asterism.errors import StorageFull
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.server.config import StartRefused
from asterism.storage.contract import StorageRefusal

_ITEM_NUMBER_BITS_PER_BOOT = 36
_BOOT_NUMBER_MAX = 2**24 - 1

_log = logging.getLogger(__name__)


def numbers_of_this_start(catalog: Catalog) -> Callable[[], int]:
    """Return the source of this start's numbers; it raises StorageFull until the store has room to count the start."""
    return item_numbers(catalog.boot_number) if catalog.boot_number else _LateNumbers(catalog)


def item_numbers(boot_number: int) -> Callable[[], int]:
    """Return the source of the numbers of one start."""
    if boot_number > _BOOT_NUMBER_MAX:
        raise StartRefused("the store was opened more than 16 million times; copy its data to a new one")
    return itertools.count(boot_number << _ITEM_NUMBER_BITS_PER_BOOT).__next__


class _LateNumbers:
    """Item numbers of a server that was started on a full disk: they begin when there is room again.

    Each call without a number retries in the background, so that an idle server does nothing.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._next: Callable[[], int] | None = None
        self._retry: asyncio.Task[None] | None = None

    def __call__(self) -> int:
        if self._next is None:
            if not self._catalog.boot_number:
                if self._retry is None or self._retry.done():
                    self._retry = asyncio.create_task(self._take_boot_number())
                raise StorageFull
            self._next = item_numbers(self._catalog.boot_number)
        return self._next()

    async def _take_boot_number(self) -> None:
        try:
            await self._catalog.take_boot_number()
        except StorageRefusal as refusal:
            _log.warning("the store still refuses writes: %s; free space on its disk", refusal)
