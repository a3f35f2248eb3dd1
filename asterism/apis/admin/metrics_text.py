"""Counters and sizes in the text format that Prometheus and its kin read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from asterism.apis.admin.console import Console
from asterism.apis.admin.sizes import SizesAtHand
from asterism.apis.http import Request, Response
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.usage_gathering import Usage
from asterism.metrics import PartitionUsage

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# After this many containers other requests get their turn.
_KEYSPACES_PER_TURN = 50
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

# What each partition has served since the process started; ranges that were split or merged away keep their counts.
_COUNTERS: dict[str, tuple[str, Callable[[PartitionUsage], float]]] = {
    "asterism_requests_total": ("Requests admitted.", lambda usage: usage.requests),
    "asterism_request_units_total": ("Request units charged.", lambda usage: usage.request_units),
    "asterism_throttled_total": ("Requests refused with 429.", lambda usage: usage.throttled),
}


@dataclass(slots=True)
class _Family:
    kind: str
    help: str
    samples: list[str] = field(default_factory=list)


async def show_metrics(console: Console, _: Request) -> Response:
    families = {name: _Family("counter", text) for name, (text, _) in _COUNTERS.items()}
    families |= {
        "asterism_partition_bytes": _Family("gauge", "Bytes of items in a physical partition."),
        "asterism_partition_items": _Family("gauge", "Items in a physical partition."),
        "asterism_partition_ru_share": _Family("gauge", "Request units per second that a partition may use."),
        "asterism_reshape_jobs": _Family("gauge", "Splits, merges and moves under way."),
        "asterism_store_bytes": _Family("gauge", "Bytes of the store on disk."),
        "asterism_info": _Family("gauge", "The version that is running."),
    }
    served = await console.usage.of_all()
    sizes = SizesAtHand(console.owner)
    for place, (database, keyspace) in enumerate(console.keyspaces(), start=1):
        await _add_keyspace(families, console, database, keyspace, served.get(keyspace.record.rid, {}), sizes)
        if place % _KEYSPACES_PER_TURN == 0:
            await asyncio.sleep(0)
    await _add_node(families, console)
    return Response(200, [("content-type", CONTENT_TYPE)], _text(families).encode())


async def _add_keyspace(
    families: dict[str, _Family],
    console: Console,
    database: str,
    keyspace: Keyspace,
    served: Usage,
    sizes: SizesAtHand,
) -> None:
    def add(family: str, range_id: int, value: float) -> None:
        labels = _labels(database=database, container=keyspace.record.name, range=str(range_id))
        families[family].samples.append(f"{family}{labels} {value:.10g}")

    for range_id, usage in served.items():
        for name, (_, count) in _COUNTERS.items():
            add(name, range_id, count(usage))
    share = console.admission.share_of(keyspace)
    for partition in keyspace.record.map.ranges:
        size = await sizes.of(keyspace, partition)
        if size is not None:
            add("asterism_partition_bytes", partition.id, size.bytes)
            add("asterism_partition_items", partition.id, size.items)
        if share is not None:
            add("asterism_partition_ru_share", partition.id, share)


async def _add_node(families: dict[str, _Family], console: Console) -> None:
    status = await console.engines.status()
    jobs = Counter(progress.job.kind for progress in console.reshaping.progress.values())
    for kind in ("split", "merge", "move"):
        families["asterism_reshape_jobs"].samples.append(f"asterism_reshape_jobs{_labels(kind=kind)} {jobs[kind]}")
    families["asterism_store_bytes"].samples.append(f"asterism_store_bytes {status.bytes_used}")
    families["asterism_info"].samples.append(f"asterism_info{_labels(version=console.version)} 1")


def _labels(**labels: str) -> str:
    inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _text(families: dict[str, _Family]) -> str:
    lines: list[str] = []
    for name, family in families.items():
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}", *family.samples]
    return "\n".join(lines) + "\n"
