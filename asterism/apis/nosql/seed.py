"""The `databases` of a seed file: databases, containers and items. Creating them is repeatable."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asterism.apis.services import DoorServices
from asterism.apis.settings import StartRefused
from asterism.errors import AsterismError, RequestRateTooLarge, ResourceNotFound
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.models.documents.container import Container
from asterism.models.documents.store import DocumentStore
from asterism.throughput.budgets import Autoscale, Manual, Throughput

# As many writes share a commit; more would only wait in memory.
_WRITES_AT_ONCE = 64
_THROUGHPUT_NAMES = ("throughput", "autoscaleMaxThroughput")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SeedContainer:
    place: str
    properties: Json
    throughput: Throughput | None
    items: list[Json]


@dataclass(frozen=True, slots=True)
class SeedDatabase:
    place: str
    name: object
    throughput: Throughput | None
    containers: list[SeedContainer]


# --- reading --------------------------------------------------------------------------------------------------------


def read_databases(databases: object, place: str) -> list[SeedDatabase]:
    entries = _list({"databases": databases}, "databases", place)
    return [_read_database(entry, f"{place}: databases[{index}]") for index, entry in enumerate(entries)]


def _read_database(entry: object, place: str) -> SeedDatabase:
    database = _object(entry, place)
    _refuse_unknown(database, {"id", "containers", *_THROUGHPUT_NAMES}, place)
    containers = [
        _read_container(entry, f"{place}.containers[{index}]")
        for index, entry in enumerate(_list(database, "containers", place))
    ]
    return SeedDatabase(place, _text(database, "id", place), _throughput(database, place), containers)


def _read_container(entry: object, place: str) -> SeedContainer:
    container = _object(entry, place)
    _text(container, "id", place)
    items = [_object(entry, f"{place}.items[{index}]") for index, entry in enumerate(_list(container, "items", place))]
    for index, item in enumerate(items):
        _text(item, "id", f"{place}.items[{index}]")
    properties = {name: held for name, held in container.items() if name not in ("items", *_THROUGHPUT_NAMES)}
    properties["partitionKey"] = _partition_key(container.get("partitionKey"), place)
    return SeedContainer(place, properties, _throughput(container, place), items)


def _partition_key(given: object, place: str) -> Json:
    """A path, several paths of a hierarchical key, or the whole definition as clients send it."""
    match given:
        case str():
            return {"paths": [given], "kind": "Hash", "version": 2}
        case [str(), *_]:
            kind = "Hash" if len(given) == 1 else "MultiHash"
            return {"paths": given, "kind": kind, "version": 2}
        case dict():
            return given
        case _:
            raise StartRefused(f'{place}: partitionKey is missing; write a path such as "/customer"')


def _throughput(entry: Json, place: str) -> Throughput | None:
    given = [name for name in _THROUGHPUT_NAMES if name in entry]
    if len(given) > 1:
        raise StartRefused(f"{place}: give throughput or autoscaleMaxThroughput, not both")
    for name in given:
        amount = entry[name]
        if not isinstance(amount, int) or isinstance(amount, bool):
            raise StartRefused(f"{place}: {name} must be a whole number of request units per second")
        return Manual(amount) if name == "throughput" else Autoscale(amount)
    return None


def _object(entry: object, place: str) -> Json:
    if not isinstance(entry, dict):
        raise StartRefused(f"{place}: a JSON object is expected here")
    return entry


def _list(entry: Json, name: str, place: str) -> list[object]:
    held = entry.get(name, [])
    if not isinstance(held, list):
        raise StartRefused(f"{place}: {name} must be a list")
    return held


def _text(entry: Json, name: str, place: str) -> str:
    held = entry.get(name)
    if not isinstance(held, str) or not held:
        raise StartRefused(f"{place}: {name} is missing, or is not a text")
    return held


def _refuse_unknown(entry: Json, known: set[str], place: str) -> None:
    for name in entry:
        if name not in known:
            raise StartRefused(f"{place}: there is no property {name!r} here; known are {', '.join(sorted(known))}")


# --- creating -------------------------------------------------------------------------------------------------------


async def create_databases(services: DoorServices, databases: Sequence[SeedDatabase]) -> list[str]:
    """Create what does not exist yet; return what the databases have now, in counts for the operator."""
    store, item_count = services.documents, 0
    for database in databases:
        record = await _create_database(store, database, services.account)
        for container in database.containers:
            item_count += await _fill_container(store, services.admission, record, container)
    container_count = sum(len(database.containers) for database in databases)
    return [f"{len(databases)} databases", f"{container_count} containers", f"{item_count} items"]


async def _create_database(store: DocumentStore, database: SeedDatabase, account: str) -> DatabaseRecord:
    try:
        known = store.catalog.find_database(account, str(database.name))
        return known or await store.create_database(account, database.name, database.throughput)
    except AsterismError as error:
        raise _refused(database.place, error) from None


async def _fill_container(
    store: DocumentStore, admission: Admission, database: DatabaseRecord, seed: SeedContainer
) -> int:
    try:
        container = await _ensure_container(store, database, seed)
    except AsterismError as error:
        raise _refused(seed.place, error) from None
    # Seeding is the operator's own work and not throttled: a container with little throughput would take hours.
    container.keyspace.buckets = {}
    waiting = list(enumerate(seed.items))
    waiting.reverse()

    async def write_in_turn() -> None:
        while waiting:
            index, item = waiting.pop()
            await _write(container, item, f"{seed.place}.items[{index}]")

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(_WRITES_AT_ONCE, len(waiting))):
                group.create_task(write_in_turn())
    except* StartRefused as refusals:
        raise refusals.exceptions[0] from None
    finally:
        admission.refresh(container.keyspace)
    return len(seed.items)


async def _ensure_container(store: DocumentStore, database: DatabaseRecord, seed: SeedContainer) -> Container:
    try:
        return store.container(database, seed.properties["id"])
    except ResourceNotFound:
        return await store.create_container(database, seed.properties, seed.throughput)


async def _write(container: Container, item: Mapping[str, Any], place: str) -> None:
    while True:
        try:
            await container.upsert_item(dict(item), None)
            return
        except RequestRateTooLarge as throttled:
            # A split that ended meanwhile has given the container new budgets.
            await asyncio.sleep(throttled.retry_after_seconds)
        except AsterismError as error:
            raise _refused(place, error) from None


def _refused(place: str, error: AsterismError) -> StartRefused:
    return StartRefused(f"{place}: {getattr(error, 'reason', error)}")
