"""Work behind the requests: this process's own or, when several serve one store, that of the one that leads."""

from __future__ import annotations

from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.coordination import Background, Coordination
from asterism.keyspaces.owner import Owner


class BackgroundWork:
    """Starts and stops it. A process alone has nobody to agree with, until it opens its store to others."""

    def __init__(self, catalog: Catalog, owner: Owner, work: Background, coordination: Coordination) -> None:
        self._catalog = catalog
        self._owner = owner
        self._work = work
        self._coordination = coordination

    @property
    def others(self) -> int:
        """How many other processes serve the same store."""
        return self._coordination.others if self._catalog.is_shared else 0

    async def start(self) -> None:
        await (self._coordination if self._catalog.is_shared else self._work).start()

    async def stop(self) -> None:
        await (self._coordination if self._catalog.is_shared else self._work).stop()

    async def become_shared(self) -> None:
        """From here on other processes may come: they hear of what this one changes, and it of what they do."""
        if not self._catalog.is_shared:
            await self._work.stop()
            self._catalog.store.is_shared = True
            self._owner.follow_others(self._catalog.follow)
            await self._coordination.start()
