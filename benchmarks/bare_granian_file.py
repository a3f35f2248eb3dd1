"""The least a server can do with a large blob: Granian answers with a file.

Run as `python -m benchmarks.bare_granian_file PORT FILE`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import uvloop
from granian.constants import Interfaces
from granian.server.embed import Server


def make_application(file: Path) -> Any:
    headers = [("content-type", "application/octet-stream"), ("content-length", str(file.stat().st_size))]

    async def application(scope: Any, protocol: Any) -> None:
        if scope.path == "/":
            protocol.response_empty(204, [])
        else:
            protocol.response_file(200, headers, str(file))

    return application


async def serve(port: int, file: Path) -> None:
    server = Server(
        make_application(file),
        address="127.0.0.1",
        port=port,
        interface=Interfaces.RSGI,
        websockets=False,
        log_enabled=False,
    )
    asyncio.get_running_loop().add_signal_handler(15, server.stop)
    await server.serve()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
