"""The least a server can do: Granian returns the value that LMDB has under the last part of the path.

No key check, no request units, no headers but the type: the ceiling that a point read is compared with.
Run as `python -m benchmarks.bare_granian PORT FOLDER ITEM_COUNT`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import lmdb
import uvloop
from granian.constants import Interfaces
from granian.server.embed import Server

from benchmarks.workload import make_item

HEADERS = [("content-type", "application/json")]


def fill(environment: lmdb.Environment, item_count: int) -> None:
    with environment.begin(write=True) as transaction:
        for number in range(item_count):
            item_id = f"i{number:08d}"
            transaction.put(item_id.encode(), json.dumps(make_item(item_id), separators=(",", ":")).encode())


def make_application(environment: lmdb.Environment) -> Any:
    async def application(scope: Any, protocol: Any) -> None:
        item_id = scope.path.rstrip("/").rpartition("/")[2]
        with environment.begin(buffers=False) as transaction:
            value = transaction.get(item_id.encode())
        if value is None:
            protocol.response_empty(404, HEADERS)
        else:
            protocol.response_bytes(200, HEADERS, value)

    return application


async def serve(port: int, folder: Path, item_count: int) -> None:
    environment = lmdb.open(str(folder), map_size=1 << 30)
    fill(environment, item_count)
    server = Server(
        make_application(environment),
        address="127.0.0.1",
        port=port,
        interface=Interfaces.RSGI,
        websockets=False,
        log_enabled=False,
    )
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(15, server.stop)
    await server.serve()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
