"""A process that serves a TCP port which it shares with others: `python -m tests.toy_door.echo_worker PORT`.

It answers every message with its process id, says "ready" when it listens, and stops at SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import uvloop

from asterism.apis.transports.codec import MalformedBytes
from asterism.apis.transports.messages import Reply, serve_messages
from asterism.apis.transports.tcp import ByteStream
from asterism.limits import MIB, Limits
from asterism.server.listeners.group import DoorPort, PortLimits, make_listeners
from asterism.server.listeners.tls import CertificateFiles
from tests.toy_door.echo import EchoHttp, LengthPrefixedCodec, encode


class ProcessIds:
    async def serve(self, stream: ByteStream) -> None:
        await serve_messages(stream, LengthPrefixedCodec(), self)

    async def answer(self, message: bytes) -> Reply:
        return encode(str(os.getpid()).encode())

    def refuse(self, error: MalformedBytes) -> bytes:
        return b""


def _no_certificate() -> CertificateFiles:
    raise AssertionError("the port is plain")


async def main(port: int) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    each = DoorPort(door=ProcessIds(), port=port, transport="tcp", limits=PortLimits(body_bytes_max=MIB))
    group = make_listeners(
        [each], admin=EchoHttp(), address="127.0.0.1", limits=Limits(), is_tls=False, certificate=_no_certificate
    )
    await group.start()
    print("ready", flush=True)
    await group.until(stopping)
    await group.stop(drain_seconds_max=10.0)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
