"""The times of a load with a fixed rate."""

from __future__ import annotations

import asyncio

from benchmarks.load import Load, LoadResult
from benchmarks.pacing import Pace

REPLY = b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n"


def test_times_are_evenly_spaced_from_the_start() -> None:
    pace = Pace(per_second=4, started=100)
    assert [pace.next_due() for _ in range(5)] == [100, 100.25, 100.5, 100.75, 101]


def test_times_do_not_drift_over_many_requests() -> None:
    pace = Pace(per_second=300, started=0)
    assert [pace.next_due() for _ in range(30_001)][-1] == 100


class Server(asyncio.Protocol):
    """Answers every request at once; a request arrives in one piece."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def data_received(self, _data: bytes) -> None:
        self.transport.write(REPLY)


async def send_paced(count: int, *, per_second: float) -> LoadResult:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0)
    load = Load(server.sockets[0].getsockname()[1], iter([b"request"] * count), connections=4, per_second=per_second)
    await load.start()
    await load.wait_until_idle()
    result = await load.finish()
    server.close()
    return result


def test_a_paced_load_sends_every_request_and_counts_the_bytes_of_answers() -> None:
    result = asyncio.run(send_paced(21, per_second=500))
    assert (result.statuses, result.error_count, result.received_bytes) == ({201: 21}, 0, 21 * len(REPLY))
