"""The least a server over PostgreSQL can do: Granian returns the row whose key is the last part of the path.

No key check, no request units, no fence: the ceiling that a point read is compared with.
Run as `python -m benchmarks.bare_granian_postgres PORT CONNECTION_STRING ITEM_COUNT`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import asyncpg
import uvloop
from granian.constants import Interfaces
from granian.server.embed import Server

from benchmarks.workload import make_item

HEADERS = [("content-type", "application/json")]
# As many as Asterism opens for reading.
CONNECTIONS = 8


async def fill(pool: Any, item_count: int) -> None:
    await pool.execute("CREATE TABLE bare_items (k bytea PRIMARY KEY, v bytea NOT NULL)")
    names = [f"i{number:08d}" for number in range(item_count)]
    values = [json.dumps(make_item(name), separators=(",", ":")).encode() for name in names]
    await pool.execute(
        "INSERT INTO bare_items SELECT * FROM unnest($1::bytea[], $2::bytea[])",
        [name.encode() for name in names],
        values,
    )


def make_application(pool: Any) -> Any:
    async def application(scope: Any, protocol: Any) -> None:
        item_id = scope.path.rstrip("/").rpartition("/")[2]
        value = await pool.fetchval("SELECT v FROM bare_items WHERE k = $1", item_id.encode())
        if value is None:
            protocol.response_empty(404, HEADERS)
        else:
            protocol.response_bytes(200, HEADERS, value)

    return application


async def serve(port: int, connection_string: str, item_count: int) -> None:
    pool = await asyncpg.create_pool(connection_string, min_size=CONNECTIONS, max_size=CONNECTIONS)
    await fill(pool, item_count)
    server = Server(
        make_application(pool),
        address="127.0.0.1",
        port=port,
        interface=Interfaces.RSGI,
        websockets=False,
        log_enabled=False,
    )
    asyncio.get_running_loop().add_signal_handler(15, server.stop)
    await server.serve()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
