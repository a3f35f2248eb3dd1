"""Queues and blobs: messages, small blobs, a blob of 1 GB, a listing of a million, beside Azurite on one core."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.measurement import Measurement, not_measured
from benchmarks.processes import NotMeasured, fresh_folder
from benchmarks.storage_blobs import measure_large_blob, measure_listing, measure_small_blobs
from benchmarks.storage_figures import ASTERISM, CASE, PEER
from benchmarks.storage_queues import measure_queues
from benchmarks.storage_servers import StorageServer, running_azurite_storage, running_storage
from benchmarks.subject import Subject


def start_peer(stack: ExitStack, servers: dict[str, StorageServer]) -> list[Measurement]:
    """Add the peer to the servers; return the measurements that are missing where it does not run."""
    try:
        servers[PEER] = stack.enter_context(running_azurite_storage(stack.enter_context(fresh_folder())))
    except (NotMeasured, OSError) as problem:
        return [not_measured(CASE, f"ratios to {PEER}", str(problem))]
    return []


async def measure(subject: Subject) -> list[Measurement]:
    found: list[Measurement] = []
    missing: list[Measurement] = []
    for part in (measure_queues, measure_small_blobs, measure_large_blob):
        # Each part with empty servers: what one leaves behind would slow the next.
        with ExitStack() as stack:
            servers = {ASTERISM: stack.enter_context(running_storage(subject, stack.enter_context(fresh_folder())))}
            if not subject.is_compared:
                missing = start_peer(stack, servers)
            found += await part(servers)
    if not subject.is_compared:
        with fresh_folder() as data, running_storage(subject, data) as server:
            found += await measure_listing(server, subject.listed_blobs)
    return [*found, *missing]
