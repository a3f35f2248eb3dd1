"""The databases and collections of the server, or of an account, a page at a time.

A server may have thousands of collections, and the size of each is a read of the store: sizes are read for the page
alone, unless the page is chosen by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import query_parameters, whole_number_of
from asterism.apis.admin.recent_usage import RecentUse, recent_uses
from asterism.apis.admin.services import AdminServices, Collection
from asterism.apis.admin.sizes import PartitionSizes
from asterism.apis.admin.throughput import describe_offer, describe_throughput
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.keyspaces.catalog.accounts import account_of
from asterism.keyspaces.routing.statistics import Size
from asterism.models.collections.records import MARK
from asterism.values.json.text import dumps

ROWS_DEFAULT: Final = 200
ROWS_MAX: Final = 1000
_OFFSET_MAX: Final = 10**9
SORTS: Final = ("name", "bytes", "items", "ru")


@dataclass(frozen=True, slots=True)
class _Page:
    search: str
    sort: str
    offset: int
    limit: int

    def matches(self, collection: Collection) -> bool:
        names = (collection.name, collection.database or "", collection.account)
        return any(self.search in name.casefold() for name in names)


@dataclass(slots=True)
class _Facts:
    """Figures of the collections, by resource id, as far as they are read already."""

    sizes: dict[bytes, Size | None]
    recent: dict[bytes, RecentUse | None]


async def show_overview(services: AdminServices, request: Request) -> Response:
    page = _page_asked(query_parameters(request))
    collections = list(services.collections())
    matching = sorted((found for found in collections if page.matches(found)), key=_by_name)
    facts = _Facts({}, {})
    sizes = PartitionSizes(services.router)
    if page.sort in ("bytes", "items"):
        facts.sizes = await _sizes(sizes, matching)
    if page.sort == "ru":
        facts.recent = await recent_uses(services, [found.keyspace for found in matching])
    # Stable: collections with equal figures stay in the order of their names.
    shown = sorted(matching, key=lambda found: -_figure(page.sort, found, facts))[page.offset :][: page.limit]
    keyspaces = [found.keyspace for found in shown]
    facts.sizes |= await _sizes(sizes, [found for found in shown if found.key not in facts.sizes])
    facts.recent |= await recent_uses(services, [space for space in keyspaces if space.record.rid not in facts.recent])
    jobs = Counter(progress.job.keyspace_rid for progress in services.reshaper.progress.values())
    answer = {
        "account": services.scope,
        "databases": _databases(services, collections),
        "total": len(matching),
        "collections": [_row(services, found, facts, jobs) for found in shown],
        "totals": _totals(services, collections, facts),
    }
    return Response(200, JSON_HEADERS, dumps(answer))


async def _sizes(sizes: PartitionSizes, collections: list[Collection]) -> dict[bytes, Size | None]:
    """Return the sizes of collections by their keys: of whole keyspaces, and of logical partitions of shared ones."""
    found = await sizes.of_keyspaces([each.keyspace for each in collections if each.point is None])
    for each in collections:
        if each.point is not None:
            found[each.key] = await sizes.of_logical(each.keyspace, each.point)
    return found


def _page_asked(parameters: Mapping[str, str]) -> _Page:
    sort = parameters.get("sort", "name")
    if sort not in SORTS:
        raise MalformedRequest(reason=f"'sort' must be one of {', '.join(SORTS)}.")
    return _Page(
        search=parameters.get("search", "").casefold(),
        sort=sort,
        offset=whole_number_of(parameters, "offset", default=0, minimum=0, maximum=_OFFSET_MAX),
        limit=whole_number_of(parameters, "limit", default=ROWS_DEFAULT, minimum=1, maximum=ROWS_MAX),
    )


def _by_name(collection: Collection) -> tuple[str, str, str, str]:
    return (collection.account, collection.database or "", collection.name.casefold(), collection.name)


def _figure(sort: str, collection: Collection, facts: _Facts) -> float:
    """Return the figure that a collection is sorted by, the largest first; unknown ones come last."""
    if sort == "ru":
        recent = facts.recent[collection.keyspace.record.rid] if collection.point is None else None
        return -1.0 if recent is None else recent.ru_per_second
    if sort == "name":
        return 0.0
    size = facts.sizes[collection.key]
    return -1.0 if size is None else float(size.bytes if sort == "bytes" else size.items)


def _row(services: AdminServices, collection: Collection, facts: _Facts, jobs: Mapping[bytes, int]) -> dict[str, Any]:
    record = collection.keyspace.record
    size, is_shared = facts.sizes[collection.key], collection.point is not None
    # The use of a shared keyspace is that of all of its collections.
    recent = None if is_shared else facts.recent[record.rid]
    throughput = describe_throughput(services, collection.keyspace)
    return {
        **collection.names(),
        "explorer": collection.kind.explorer,
        "partition_key": [] if is_shared else list(record.definition.paths),
        "throughput": {**throughput, "mode": "shared"} if is_shared else throughput,
        "partitions": len(record.map.ranges),
        "bytes": None if size is None else size.bytes,
        "items": None if size is None else size.items,
        "ru_per_second": None if recent is None else round(recent.ru_per_second, 2),
        "throttled_recent": None if recent is None else recent.throttled,
        # An index transformation is work that is due on older data.
        "jobs": jobs.get(record.rid, 0) + bool(record.catching_up),
        "line": "ordered" if record.definition.is_ordered else "hash",
    }


def _databases(services: AdminServices, collections: list[Collection]) -> list[dict[str, Any]]:
    """Describe the databases that clients name; those of doors whose clients name none are left out."""
    catalog = services.store.catalog
    counts = Counter(found.keyspace.record.database_rid for found in collections)
    named = [
        (record.account, record.name, "container", record)
        for record in catalog.databases.values()
        if account_of(record.account) == record.account and services.is_in_scope(record)
    ]
    of_collections = {
        found.keyspace.record.database_rid: (found.account, found.database or "", found.kind.noun)
        for found in collections
        if MARK in found.keyspace.record.settings
    }
    named += [(*names, catalog.databases[rid]) for rid, names in of_collections.items()]
    return [
        {
            "account": account,
            "name": name,
            # Of what it has.
            "kind": kind,
            "throughput": describe_offer(offer),
            "is_shared_throughput": offer is not None,
            "containers": counts[record.rid],
        }
        for account, name, kind, record in sorted(named, key=lambda entry: entry[:3])
        for offer in [catalog.offer_for(record.rid)]
    ]


def _totals(services: AdminServices, collections: list[Collection], facts: _Facts) -> dict[str, Any]:
    """Count all collections, of whatever page; their bytes only if all of them were read."""
    counts = Counter(found.kind.plural for found in collections)
    sizes = [facts.sizes.get(found.key) for found in collections]
    keyspaces = {found.keyspace.record.rid: found.keyspace for found in collections}
    known = [size.bytes for size in sizes if size is not None]
    return {
        **{kind.plural: counts[kind.plural] for kind in services.collection_kinds},
        "partitions": sum(len(keyspace.record.map.ranges) for keyspace in keyspaces.values()),
        "bytes": sum(known) if len(known) == len(collections) else None,
    }
