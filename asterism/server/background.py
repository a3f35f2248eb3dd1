"""Work behind the requests: of this process itself or, when several serve one store, of the leader."""

from __future__ import annotations

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.coordination import Background, Coordination
from asterism.keyspaces.routing.router import PartitionRouter


class BackgroundWork:
    """Starter of the background work. A process alone needs no leader until it opens its store to others."""

    def __init__(self, catalog: Catalog, router: PartitionRouter, work: Background, coordination: Coordination) -> None:
        self._catalog = catalog
        self._router = router
        self._work = work
        self._coordination = coordination

    @property
    def others(self) -> int:
        """Return the number of other processes that serve the same store."""
        return self._coordination.others if self._catalog.is_shared else 0

    async def start(self) -> None:
        await (self._coordination if self._catalog.is_shared else self._work).start()

    async def stop(self) -> None:
        await (self._coordination if self._catalog.is_shared else self._work).stop()

    async def become_shared(self) -> None:
        """Admit other processes to the store: from here on each hears of the changes of the others."""
        if not self._catalog.is_shared:
            await self._work.stop()
            self._catalog.store.is_shared = True
            self._router.follow_others(self._catalog.follow)
            await self._coordination.start()
