"""The PostgreSQL engine beside bare asyncpg: point reads and durable writes of the rows that a created item is made of.

The server has a core of its own and the program that asks it another; the two sides take turns, so that whatever
disturbs the machine for a while disturbs both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from benchmarks.bare_postgres import BarePostgres, EngineAlone
from benchmarks.created_batches import batches_of_creates
from benchmarks.measurement import Measurement
from benchmarks.processes import NotMeasured, server_core
from benchmarks.subject import PROJECT, Subject
from tests.support.postgres import running_server

CASE = "postgres"
CONNECTIONS = 32
ROUNDS = 7
BATCHES_PER_ROUND = 600
READS_PER_ROUND = 4000

# The whole server is to reach half of the bare driver; the engine alone has to leave room for what is above it.
TO_BARE_AT_LEAST = 0.75


@contextmanager
def database() -> Iterator[str]:
    """The connection string of a new database on a server of its own core."""
    try:
        with running_server() as server:
            assert server.process is not None
            os.sched_setaffinity(server.process.pid, {server_core()})
            yield server.create_database()
    except AssertionError as problem:
        raise NotMeasured(str(problem)) from problem


async def measure(subject: Subject) -> list[Measurement]:
    if subject.folder != PROJECT:
        raise NotMeasured("the engine is measured inside the benchmark's own process, which has its own checkout's")
    batches = await batches_of_creates(BATCHES_PER_ROUND * ROUNDS)
    with database() as connection_string:
        bare = await BarePostgres.open(connection_string, connections=CONNECTIONS)
        engine = await EngineAlone.open(connection_string, tasks=CONNECTIONS)
        try:
            bare_writes, engine_writes, bare_reads, engine_reads = [], [], [], []
            statements = 0
            for number in range(ROUNDS):
                first = number * BATCHES_PER_ROUND
                share = batches[first : first + BATCHES_PER_ROUND]
                keys = [batch.versioned_puts[0][0] for batch in share]
                bare_writes.append(await bare.write(share, first_lsn=first + 1))
                before = engine.statements_sent
                engine_writes.append(await engine.write(share))
                statements += engine.statements_sent - before
                bare_reads.append(await bare.read(keys, count=READS_PER_ROUND))
                engine_reads.append(await engine.read(keys, count=READS_PER_ROUND))
        finally:
            await bare.close()
            await engine.close()
    together = BATCHES_PER_ROUND * ROUNDS / statements
    return [
        *compared("point reads", bare_reads, engine_reads, note="one row each"),
        *compared("durable batches", bare_writes, engine_writes, note=f"{together:.0f} batches a transaction"),
    ]


def compared(name: str, bare: list[float], engine: list[float], *, note: str) -> list[Measurement]:
    # The promise is about the best round of each; the median of the rounds is shown beside it, because the two differ
    # widely on a machine that others use as well.
    best_bare, best_engine = max(bare), max(engine)
    of_rounds = median(ours / theirs for ours, theirs in zip(engine, bare, strict=True))
    return [
        Measurement(CASE, f"{name}, bare asyncpg", best_bare, "/s", note=f"{CONNECTIONS} connections"),
        Measurement(CASE, f"{name}, engine", best_engine, "/s", note=note),
        Measurement(CASE, f"{name}, engine to bare", best_engine / best_bare, "", at_least=TO_BARE_AT_LEAST),
        Measurement(CASE, f"{name}, engine to bare, median round", of_rounds, ""),
    ]
