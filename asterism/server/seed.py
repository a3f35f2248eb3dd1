"""Databases, containers and items from a JSON file, created at the first start of a data directory.

The file is checked whole before anything is created. Creating is repeatable: what a crash interrupted is completed at
the next start, and only then is the data directory marked as seeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.documents.container import Container
from asterism.documents.store import DocumentStore
from asterism.errors import AsterismError, MalformedRequest, RequestRateTooLarge, ResourceNotFound
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.records import DatabaseRecord
from asterism.server.config import StartRefused
from asterism.server.data_directory import DataDirectory
from asterism.throughput.budgets import Autoscale, Manual, Throughput
from asterism.values.json_text import loads

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


async def apply_seed(
    file: Path, store: DocumentStore, admission: Admission, directory: DataDirectory, *, account: str
) -> str:
    """Creates what the file says, unless that was done before; tells the operator which it was."""
    if directory.seeded_marker.exists():
        return f"The data directory was seeded before; {file} is not applied again."
    databases = read_seed(file)
    item_count = 0
    for database in databases:
        record = await _create_database(store, database, account)
        for container in database.containers:
            item_count += await _fill_container(store, admission, record, container)
    directory.seeded_marker.write_text("yes\n")
    container_count = sum(len(one.containers) for one in databases)
    return f"Seeded from {file}: {len(databases)} databases, {container_count} containers, {item_count} items."


# --- reading --------------------------------------------------------------------------------------------------------


def read_seed(file: Path) -> list[SeedDatabase]:
    try:
        told = loads(file.read_bytes())
    except OSError as error:
        raise StartRefused(f"the seed file {file} cannot be read: {error.strerror}") from None
    except MalformedRequest as malformed:
        raise StartRefused(f"the seed file {file}: {malformed.reason}") from None
    entries = _list(_object(told, str(file)), "databases", str(file), required=True)
    return [_read_database(entry, f"{file}: databases[{index}]") for index, entry in enumerate(entries)]


def _read_database(told: object, place: str) -> SeedDatabase:
    database = _object(told, place)
    _refuse_unknown(database, {"id", "containers", *_THROUGHPUT_NAMES}, place)
    containers = [
        _read_container(entry, f"{place}.containers[{index}]")
        for index, entry in enumerate(_list(database, "containers", place))
    ]
    return SeedDatabase(place, _text(database, "id", place), _throughput(database, place), containers)


def _read_container(told: object, place: str) -> SeedContainer:
    container = _object(told, place)
    _text(container, "id", place)
    items = [_object(entry, f"{place}.items[{index}]") for index, entry in enumerate(_list(container, "items", place))]
    for index, item in enumerate(items):
        _text(item, "id", f"{place}.items[{index}]")
    properties = {name: held for name, held in container.items() if name not in ("items", *_THROUGHPUT_NAMES)}
    properties["partitionKey"] = _partition_key(container.get("partitionKey"), place)
    return SeedContainer(place, properties, _throughput(container, place), items)


def _partition_key(told: object, place: str) -> Json:
    """A path, several paths of a hierarchical key, or the whole definition as clients send it."""
    match told:
        case str():
            return {"paths": [told], "kind": "Hash", "version": 2}
        case [str(), *_]:
            kind = "Hash" if len(told) == 1 else "MultiHash"
            return {"paths": told, "kind": kind, "version": 2}
        case dict():
            return told
        case _:
            raise StartRefused(f'{place}: partitionKey is missing; write a path such as "/customer"')


def _throughput(told: Json, place: str) -> Throughput | None:
    given = [name for name in _THROUGHPUT_NAMES if name in told]
    if len(given) > 1:
        raise StartRefused(f"{place}: give throughput or autoscaleMaxThroughput, not both")
    for name in given:
        amount = told[name]
        if not isinstance(amount, int) or isinstance(amount, bool):
            raise StartRefused(f"{place}: {name} must be a whole number of request units per second")
        return Manual(amount) if name == "throughput" else Autoscale(amount)
    return None


def _object(told: object, place: str) -> Json:
    if not isinstance(told, dict):
        raise StartRefused(f"{place}: a JSON object is expected here")
    return told


def _list(told: Json, name: str, place: str, *, required: bool = False) -> list[object]:
    held = told.get(name, None if required else [])
    if not isinstance(held, list):
        raise StartRefused(f"{place}: {name} must be a list")
    return held


def _text(told: Json, name: str, place: str) -> str:
    held = told.get(name)
    if not isinstance(held, str) or not held:
        raise StartRefused(f"{place}: {name} is missing, or is not a text")
    return held


def _refuse_unknown(told: Json, known: set[str], place: str) -> None:
    for name in told:
        if name not in known:
            raise StartRefused(f"{place}: there is no property {name!r} here; known are {', '.join(sorted(known))}")


# --- creating -------------------------------------------------------------------------------------------------------


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
