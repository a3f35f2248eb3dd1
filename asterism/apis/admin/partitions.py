"""The physical partitions of a container or a table, for operators."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.logical_partitions import KeyNames, Survey, survey
from asterism.apis.admin.ordered_ranges import describe_ordered
from asterism.apis.admin.parameters import keyspace_of, query_parameters, whole_number_of
from asterism.apis.admin.reshapes import describe_job
from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.sizes import PartitionSizes
from asterism.apis.admin.synthetic_keys import describe_synthetic
from asterism.apis.admin.throughput import describe_throughput
from asterism.apis.admin.verdicts import MeasuredPartition, logical_bytes_max, show_verdict
from asterism.apis.transports.http import Request, Response
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.metrics import PartitionUsage
from asterism.models.collections.item_view import NO_KEY, item_definition
from asterism.models.collections.records import HOME, MARK, CollectionRecord, HomeSettings
from asterism.partitioning.partition_key import PartitionKeyKind
from asterism.values.json.text import dumps

# Of the largest and of the hottest logical partitions of each physical one: enough to see one that stands out.
TOP_DEFAULT: Final = 5
TOP_MAX: Final = 50
# The same of the whole container.
CONTAINER_TOP: Final = 10
UNREACHABLE: Final = "unreachable"
_NAMES: Final = ("database", "container", "account")
# In place of the name of one of those that share a keyspace, such as queues.
_ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class _Asked:
    with_details: bool
    top: int


async def show_partitions(services: AdminServices, request: Request) -> Response:
    """Describe the partitions; `details=false` leaves out the figures that need a scan of all logical partitions."""
    parameters = query_parameters(request)
    keyspace = keyspace_of(services, parameters)
    own_partition = await _own_partition(services, keyspace, parameters)
    asked = _Asked(
        with_details=parameters.get("details") != "false",
        top=whole_number_of(parameters, "top", default=TOP_DEFAULT, minimum=1, maximum=TOP_MAX),
    )
    record = keyspace.record
    names = KeyNames(services, keyspace)
    measured = await _measure(services, keyspace, asked)
    names.unreachable = [partition.range.range for partition in measured if partition.size is None]
    jobs = await _jobs(services, keyspace)
    kind = services.kind_of(keyspace)
    named = _NAMES if kind is None or kind.parameter is None else (*_NAMES, kind.parameter)
    answer: dict[str, Any] = {name: parameters[name] for name in named if name in parameters}
    rules, words = describe_synthetic(record)
    answer |= {
        "kind": None if kind is None else kind.noun,
        # Of those that share a keyspace, the partition of the named one; null for any other.
        "own_partition": own_partition,
        "partition_key": {**_partition_key(record), **rules},
        "synthetic_key_words": words,
        "collections": _collections_sharing(keyspace),
        "map_version": record.map.version,
        "throughput": describe_throughput(services, keyspace),
        "limits": {
            "logical_partition_bytes_max": logical_bytes_max(services, keyspace),
            "physical_partition_bytes_max": services.limits.physical_partition_bytes_max,
        },
        "totals": _totals(measured),
        "partitions": [
            await _describe(services, keyspace, partition, names, asked) | {"job": jobs.get(partition.range.id)}
            for partition in measured
        ],
        "hottest": await _hottest(measured, names),
    }
    if asked.with_details:
        answer["largest"] = await _largest(measured, names)
    answer["verdict"] = await show_verdict(services, keyspace, measured, names)
    return Response(200, JSON_HEADERS, dumps(answer))


async def _own_partition(services: AdminServices, keyspace: Keyspace, parameters: Mapping[str, str]) -> str | None:
    kind = services.kind_of(keyspace)
    if kind is None or kind.parameter is None or not kind.is_shared or parameters[kind.parameter] == _ALL:
        return None
    return str((await services.sharing_partition(keyspace, parameters[kind.parameter])).id)


def _partition_key(record: KeyspaceRecord) -> dict[str, Any]:
    if MARK not in record.settings:
        return record.definition.to_json()
    # The key of a home is the server's own: each of its collections is a logical partition.
    definition = NO_KEY if record.settings[MARK] == HOME else item_definition(record)
    return definition.to_json()


def _collections_sharing(keyspace: Keyspace) -> list[str]:
    """Return the names of collections of MongoDB that share a keyspace; none for a keyspace of its own."""
    if keyspace.record.settings.get(MARK) != HOME:
        return []
    stored = HomeSettings.from_settings(keyspace.record.settings).collections
    return sorted(name for name, text in stored.items() if not CollectionRecord.from_text("", name, text).is_view)


async def _measure(services: AdminServices, keyspace: Keyspace, asked: _Asked) -> list[MeasuredPartition]:
    served = await services.usage.of_keyspace(keyspace)
    sizes = PartitionSizes(services.router)
    measured = []
    for partition in keyspace.record.map.ranges:
        size = await sizes.of(keyspace, partition)
        surveyed = None
        if asked.with_details and size is not None:
            surveyed = await survey(services, keyspace, partition, top=max(asked.top, CONTAINER_TOP))
        measured.append(MeasuredPartition(partition, size, served.get(partition.id) or PartitionUsage(), surveyed))
    return measured


async def _jobs(services: AdminServices, keyspace: Keyspace) -> dict[int, dict[str, Any] | None]:
    """Describe the jobs under way on the partitions of a keyspace, by the id of the range."""
    shown: dict[int, dict[str, Any] | None] = {}
    for progress in list(services.reshaper.progress.values()):
        if progress.job.keyspace_rid == keyspace.record.rid:
            described = await describe_job(services, progress)
            shown |= dict.fromkeys(progress.job.source_ids, described)
    return shown


async def _describe(
    services: AdminServices, keyspace: Keyspace, measured: MeasuredPartition, names: KeyNames, asked: _Asked
) -> dict[str, Any]:
    """Describe a partition. Without a size, its node is unreachable."""
    partition, size, usage = measured.range, measured.size, measured.usage
    start, end = partition.range.to_texts()
    entry = {
        "id": str(partition.id),
        "min": start,
        "max": end,
        "bytes": None if size is None else size.bytes,
        "items": None if size is None else size.items,
        "ru_share": services.admission.share_of(keyspace),
        "ru_consumed": round(usage.request_units, 2),
        "requests": usage.requests,
        "throttled": usage.throttled,
        "state": UNREACHABLE if size is None else partition.status.value,
        "node": services.node_name(partition.node),
        "parents": [str(parent) for parent in partition.parents],
    }
    if keyspace.record.definition.kind is PartitionKeyKind.RANGE:
        entry |= describe_ordered(services.load, keyspace, partition)
    if asked.with_details:
        entry |= await _describe_logical(measured.survey, usage, names, top=asked.top)
        # Names are reads of the store, which never suspend on the embedded one.
        await asyncio.sleep(0)
    return entry


async def _describe_logical(
    surveyed: Survey | None, usage: PartitionUsage, names: KeyNames, *, top: int
) -> dict[str, Any]:
    if surveyed is None:
        return {"logical_partitions": None, "is_partial": False, "largest": [], "hottest": []}
    return {
        "logical_partitions": surveyed.count,
        "is_partial": surveyed.is_partial,
        "largest": [
            {**await names.of(large.effective_key), "bytes": large.size.bytes, "items": large.size.items}
            for large in surveyed.largest[:top]
        ],
        "hottest": [
            {**await names.of(effective_key), "request_units": round(request_units, 2)}
            for effective_key, request_units in usage.hottest.standing_out(top)
        ],
    }


# --- the whole container --------------------------------------------------------------------------------------------


def _totals(measured: list[MeasuredPartition]) -> dict[str, Any]:
    """Sum up the partitions; a figure that some of them lack is not known."""
    sizes = [partition.size for partition in measured if partition.size is not None]
    surveys = [partition.survey for partition in measured if partition.survey is not None]
    has_sizes, has_surveys = len(sizes) == len(measured), len(surveys) == len(measured)
    return {
        "bytes": sum(size.bytes for size in sizes) if has_sizes else None,
        "items": sum(size.items for size in sizes) if has_sizes else None,
        "logical_partitions": sum(surveyed.count for surveyed in surveys) if has_surveys else None,
        "is_partial": any(surveyed.is_partial for surveyed in surveys),
        "ru_consumed": round(sum(partition.usage.request_units for partition in measured), 2),
        "throttled": sum(partition.usage.throttled for partition in measured),
    }


async def _largest(measured: list[MeasuredPartition], names: KeyNames) -> list[dict[str, Any]]:
    found = [(large, partition) for partition in measured if partition.survey for large in partition.survey.largest]
    top = heapq.nlargest(CONTAINER_TOP, found, key=lambda entry: entry[0].size.bytes)
    return [
        {
            **await names.of(large.effective_key),
            "partition": str(partition.range.id),
            "bytes": large.size.bytes,
            "items": large.size.items,
        }
        for large, partition in top
    ]


async def _hottest(measured: list[MeasuredPartition], names: KeyNames) -> list[dict[str, Any]]:
    found = [(hot, partition) for partition in measured for hot in partition.usage.hottest.standing_out(CONTAINER_TOP)]
    top = heapq.nlargest(CONTAINER_TOP, found, key=lambda entry: entry[0][1])
    return [
        {
            **await names.of(effective_key),
            "partition": str(partition.range.id),
            "request_units": round(request_units, 2),
        }
        for (effective_key, request_units), partition in top
    ]
