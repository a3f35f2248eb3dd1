"""Containers for trials: in a scratch database, which the server drops when its lease ends, whatever becomes of the
command that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from asterism.cli.client import AdminClient
from asterism.cli.data_client import DataClient
from asterism.cli.failure import CommandFailed
from asterism.cli.import_items import CONNECTIONS, BulkWriter
from asterism.cli.offers import set_throughput

# Every partition's most: items are loaded as fast as the server allows.
_LOADING_RU_PER_PARTITION: Final = 10_000


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, as commands are told of it."""

    endpoint: str
    key: str
    insecure: bool = False

    def admin(self) -> AdminClient:
        return AdminClient(self.endpoint, self.key, insecure=self.insecure)

    def data(self) -> DataClient:
        return DataClient(self.endpoint, self.key, insecure=self.insecure)


@dataclass(frozen=True, slots=True)
class ScratchDatabase:
    server: Server
    name: str
    partitions: int

    def make_container(
        self,
        name: str,
        definition: Mapping[str, Any],
        items: Iterable[Mapping[str, Any]],
        *,
        ru_per_second: int,
        on_item: Callable[[], None] = lambda: None,
    ) -> ScratchContainer:
        """Create a container with the items in it, and then with this throughput."""
        container = ScratchContainer(self, name)
        clients = [self.server.data() for _ in range(CONNECTIONS)]
        try:
            clients[0].need(
                "POST",
                f"dbs/{self.name}/colls",
                {"id": name, "partitionKey": dict(definition)},
                type_="colls",
                link=f"dbs/{self.name}",
                headers={"x-ms-offer-throughput": str(_LOADING_RU_PER_PARTITION * self.partitions)},
            )
            _fill(container, items, clients, on_item)
            set_throughput(clients[0], container.link, ru_per_second)
        finally:
            for client in clients:
                client.close()
        return container


def _fill(
    container: ScratchContainer,
    items: Iterable[Mapping[str, Any]],
    clients: Sequence[DataClient],
    on_item: Callable[[], None],
) -> None:
    try:
        writer = BulkWriter(container.link, clients)
        for number, item in enumerate(items, start=1):
            writer.add(number, dict(item), None)
            on_item()
        writer.finish()
    except CommandFailed as failure:
        # Its lines are those of a file to import.
        raise CommandFailed(f"the scratch container could not be filled; {failure}") from None


@dataclass(frozen=True, slots=True)
class ScratchContainer:
    database: ScratchDatabase
    name: str

    @property
    def link(self) -> str:
        return f"dbs/{self.database.name}/colls/{self.name}"

    def spent_by_range(self) -> dict[str, float]:
        """Return the request units that each partition has charged so far."""
        admin = self.database.server.admin()
        reply = admin.get("partitions", database=self.database.name, container=self.name, details="false")
        return {partition["id"]: partition["ru_consumed"] for partition in reply["partitions"]}


@contextmanager
def scratch_database(server: Server, *, lease_seconds: int, partitions: int) -> Iterator[ScratchDatabase]:
    """Create a scratch database whose containers have so many partitions, and delete it at the end, whatever that is.
    A server that is gone by then deletes it when the lease ends."""
    made = server.admin().post("scratch", {"lease_seconds": lease_seconds, "partitions": partitions})
    database = ScratchDatabase(server, made["database"], partitions)
    try:
        yield database
    finally:
        client = server.data()
        link = f"dbs/{database.name}"
        # The first failure is the one to report.
        with suppress(CommandFailed):
            client.ask("DELETE", link, type_="dbs", link=link)
        client.close()
