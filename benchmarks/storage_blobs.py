"""Figures of blobs: small ones, one of 1 GB, and the listing of very many."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from statistics import median

from benchmarks import storage_wire
from benchmarks.large_blob import BLOCK_BYTES, LargeBlob, check_content, download, upload
from benchmarks.load import run_all
from benchmarks.measurement import Measurement
from benchmarks.memory_watch import MemoryPeak, watching_memory
from benchmarks.processes import fresh_folder
from benchmarks.storage_figures import ASTERISM, CASE, CONNECTIONS, call, checked, measure_rates, ratio
from benchmarks.storage_servers import StorageServer, running_bare_file
from benchmarks.wire import UnexpectedAnswer

CONTAINER = "bench"
SMALL = b"b" * 4096
READ_BLOBS = 1000
PUT_AT_LEAST, GET_AT_LEAST = 3.0, 4.0

LARGE_BLOCKS = 256
LARGE_ROUNDS = 3
DOWNLOAD_AT_LEAST, UPLOAD_AT_LEAST = 0.6, 1.5
MEMORY_MB_AT_MOST = 200.0

PAGE = 1000
FEW_LISTED = 10_000
LIST_CALLS = 40
LIST_MS_AT_MOST, LIST_RATIO_AT_MOST = 30.0, 1.5
# The million is filled for at most this long; the note says how far it came.
FILL_SECONDS_MAX = 900.0
FILL_STEP = 10_000


# --- small ------------------------------------------------------------------------------------------------------------


async def measure_small_blobs(servers: dict[str, StorageServer]) -> list[Measurement]:
    ports = {name: server.blob_port for name, server in servers.items()}
    for port in ports.values():
        await call(port, storage_wire.create_container(CONTAINER), 201)
        requests = storage_wire.put_blobs(CONTAINER, "read-", SMALL, last=READ_BLOBS)
        checked(await run_all(port, requests, connections=CONNECTIONS), "filled a container")
    # First, while the peer has few blobs.
    found = await measure_rates("blob get of 4 KB", ports, gets, unit="blobs/s", at_least=GET_AT_LEAST)
    return [*found, *await measure_rates("blob put of 4 KB", ports, puts, unit="blobs/s", at_least=PUT_AT_LEAST)]


def puts(round_number: int) -> Iterator[bytes]:
    return storage_wire.put_blobs(CONTAINER, f"r{round_number}-", SMALL)


def gets(_: int) -> Iterator[bytes]:
    numbers = random.Random(17).sample(range(READ_BLOBS), READ_BLOBS)
    return itertools.cycle([storage_wire.get_blob(CONTAINER, f"read-{number:07d}") for number in numbers])


# --- large ------------------------------------------------------------------------------------------------------------


async def measure_large_blob(servers: dict[str, StorageServer]) -> list[Measurement]:
    blob = LargeBlob(LARGE_BLOCKS)
    for server in servers.values():
        await call(server.blob_port, storage_wire.create_container(CONTAINER), 201)
    uploads, upload_peak = measure_uploads(servers, blob)
    downloads, download_peak = measure_downloads(servers[ASTERISM], blob)
    return [
        *uploads,
        *memory_figures("upload", upload_peak),
        *downloads,
        *memory_figures("download", download_peak),
    ]


def measure_uploads(servers: dict[str, StorageServer], blob: LargeBlob) -> tuple[list[Measurement], MemoryPeak]:
    kind = f"upload of {LARGE_BLOCKS * BLOCK_BYTES / 2**30:g} GB"
    seconds: dict[str, list[float]] = {name: [] for name in servers}
    with watching_memory(servers[ASTERISM].pid) as peak:
        for number in range(LARGE_ROUNDS):
            for name, server in servers.items():
                seconds[name].append(upload(server.blob_port, CONTAINER, f"large{number}", blob))
    for server in servers.values():
        check_content(server.blob_port, storage_wire.get_blob(CONTAINER, "large0"), blob)
    rates = {name: blob.length / 1e6 / median(several) for name, several in seconds.items()}
    found = transfer_figures(kind, rates, seconds)
    return [*found, *ratio(kind, rates, at_least=UPLOAD_AT_LEAST)], peak


def measure_downloads(server: StorageServer, blob: LargeBlob) -> tuple[list[Measurement], MemoryPeak]:
    """In turns with a bare server; the bytes were checked before, so that the client's MD5 limits neither."""
    kind = f"download of {LARGE_BLOCKS * BLOCK_BYTES / 2**30:g} GB"
    seconds: dict[str, list[float]] = {ASTERISM: [], "bare Granian": []}
    with fresh_folder() as folder:
        file = folder / "large"
        with file.open("wb") as written:
            for number in range(blob.block_count):
                written.writelines(blob.block(number))
        with running_bare_file(file) as bare, watching_memory(server.pid) as peak:
            bare_request = b"GET /large HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
            check_content(bare.port, bare_request, blob)
            for _ in range(LARGE_ROUNDS):
                request = storage_wire.get_blob(CONTAINER, "large0")
                seconds[ASTERISM].append(download(server.blob_port, request, length=blob.length))
                seconds["bare Granian"].append(download(bare.port, bare_request, length=blob.length))
    rates = {name: blob.length / 1e6 / median(several) for name, several in seconds.items()}
    found = transfer_figures(kind, rates, seconds)
    share = rates[ASTERISM] / rates["bare Granian"]
    return [*found, Measurement(CASE, f"{kind}, ratio to bare Granian", share, "x", at_least=DOWNLOAD_AT_LEAST)], peak


def transfer_figures(kind: str, rates: dict[str, float], seconds: dict[str, list[float]]) -> list[Measurement]:
    figures = []
    for name, rate in rates.items():
        note = "rounds of " + ", ".join(f"{value:.2f}" for value in seconds[name]) + " s"
        figures.append(Measurement(CASE, f"{kind}, {name}", rate, "MB/s", note=note))
    return figures


def memory_figures(what: str, peak: MemoryPeak) -> list[Measurement]:
    note = "resident memory has the pages of mapped files that the system keeps while nothing else needs them"
    return [
        Measurement(CASE, f"anonymous memory during {what}", peak.anonymous_mb, "MB", at_most=MEMORY_MB_AT_MOST),
        Measurement(CASE, f"resident memory during {what}", peak.resident_mb, "MB", note=note),
    ]


# --- listing ----------------------------------------------------------------------------------------------------------


async def measure_listing(server: StorageServer, wanted: int) -> list[Measurement]:
    port = server.blob_port
    for container in ("few", "many"):
        await call(port, storage_wire.create_container(container), 201)
    began = time.perf_counter()
    few_count = await fill(port, "few", FEW_LISTED)
    many_count = await fill(port, "many", wanted)
    filled_seconds = time.perf_counter() - began
    few = await median_listing_ms(port, "few", few_count)
    many = await median_listing_ms(port, "many", many_count)
    less = "" if many_count >= 1_000_000 else f", FEWER than the 1,000,000 promised (asked for {wanted:,})"
    note = f"median of {LIST_CALLS} pages at random places; filled in {filled_seconds:.0f} s{less}"
    name = f"list {PAGE:,} of {many_count:,} blobs"
    ratio_note = f"{few:.1f} ms of {few_count:,}, {many:.1f} ms of {many_count:,}"
    return [
        Measurement(CASE, name, many, "ms", at_most=LIST_MS_AT_MOST, note=note),
        Measurement(CASE, "list: many blobs to few", many / few, "x", at_most=LIST_RATIO_AT_MOST, note=ratio_note),
    ]


async def fill(port: int, container: str, wanted: int) -> int:
    """Put empty blobs; return how many."""
    count, deadline = 0, time.monotonic() + FILL_SECONDS_MAX
    while count < wanted and time.monotonic() < deadline:
        last = min(count + FILL_STEP, wanted)
        requests = storage_wire.put_blobs(container, "b", b"", first=count, last=last)
        checked(await run_all(port, requests, connections=CONNECTIONS), "filled a container")
        count = last
    return count


async def median_listing_ms(port: int, container: str, count: int) -> float:
    # Names have seven digits, so that a prefix of four has 1,000 of them.
    chosen = random.Random(23)
    prefixes = [f"b{chosen.randrange(count // PAGE):04d}" for _ in range(LIST_CALLS)]
    requests = [storage_wire.list_blobs(container, prefix, PAGE) for prefix in prefixes]
    result = checked(await run_all(port, iter(requests), connections=1), "listed")
    if result.received_bytes < LIST_CALLS * PAGE * 100:
        raise UnexpectedAnswer("a listing is too short to have all its blobs")
    return result.percentile_ms(50)
