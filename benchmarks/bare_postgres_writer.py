"""Bare asyncpg writes the rows of created items, so many in a transaction; prints how many in a second.

Run as `python -m benchmarks.bare_postgres_writer CONNECTION_STRING CONNECTIONS ITEM_COUNT FIRST_NUMBER TOGETHER`.
"""

from __future__ import annotations

import sys

import uvloop

from benchmarks.bare_postgres import BarePostgres
from benchmarks.created_batches import batches_of_creates


async def write(connection_string: str, connections: int, item_count: int, first: int, together: int) -> float:
    batches = await batches_of_creates(first + item_count)
    bare = await BarePostgres.open(connection_string, connections=connections)
    try:
        return await bare.write(batches[first:], first_lsn=first + 1, together=together)
    finally:
        await bare.close()


if __name__ == "__main__":
    print(uvloop.run(write(sys.argv[1], *map(int, sys.argv[2:]))))
