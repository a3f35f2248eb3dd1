"""Queues and blobs: messages, small blobs, a blob of 1 GB, a listing of a million, beside Azurite on one core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack

from benchmarks.measurement import Measurement, not_measured
from benchmarks.processes import NotMeasured, fresh_folder
from benchmarks.storage_blobs import measure_large_blob, measure_listing, measure_small_blobs
from benchmarks.storage_figures import ASTERISM, CASE, PEER
from benchmarks.storage_queues import measure_queues
from benchmarks.storage_servers import StorageServer, running_azurite_storage, running_storage
from benchmarks.subject import Subject
from benchmarks.wire import UnexpectedAnswer

Part = Callable[[dict[str, StorageServer]], Awaitable[list[Measurement]]]
PARTS: dict[str, Part] = {
    "queues": measure_queues,
    "small blobs": measure_small_blobs,
    "large blob": measure_large_blob,
}


def start_peer(stack: ExitStack, servers: dict[str, StorageServer]) -> list[Measurement]:
    """Add the peer to the servers; return the measurements that are missing where it does not run."""
    try:
        servers[PEER] = stack.enter_context(running_azurite_storage(stack.enter_context(fresh_folder())))
    except (NotMeasured, OSError) as problem:
        return [not_measured(CASE, f"ratios to {PEER}", str(problem))]
    return []


async def measure(subject: Subject) -> list[Measurement]:
    """Each part with empty servers of its own: what one leaves behind would slow the next."""
    found: list[Measurement] = []
    for name, part in PARTS.items():
        try:
            found += await measure_part(part, subject)
        except (NotMeasured, UnexpectedAnswer, OSError) as problem:
            found.append(not_measured(CASE, name, str(problem) or type(problem).__name__))
    if not subject.is_compared:
        found += await measure_long_listing(subject)
    return found


async def measure_part(part: Part, subject: Subject) -> list[Measurement]:
    with ExitStack() as stack:
        servers = {ASTERISM: stack.enter_context(running_storage(subject, stack.enter_context(fresh_folder())))}
        missing = [] if subject.is_compared else start_peer(stack, servers)
        return [*await part(servers), *missing]


async def measure_long_listing(subject: Subject) -> list[Measurement]:
    try:
        with fresh_folder() as data, running_storage(subject, data) as server:
            return await measure_listing(server, subject.listed_blobs)
    except (NotMeasured, UnexpectedAnswer, OSError) as problem:
        return [not_measured(CASE, "listing", str(problem) or type(problem).__name__)]
