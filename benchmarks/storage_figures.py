"""Names and promises of the figures for queues and blobs, and what their parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.load import LoadResult, middle, run_load
from benchmarks.measurement import Measurement
from benchmarks.wire import Caller, UnexpectedAnswer

CASE = "storage"
ASTERISM, PEER = "asterism", "azurite"
CONNECTIONS = 16
ROUNDS = 3
ROUND_SECONDS = 3.0
WARM_UP_SECONDS = 0.5


async def call(port: int, request: bytes, *statuses: int) -> None:
    caller = Caller(port)
    await caller.expect(request, *statuses)
    await caller.close()


def checked(result: LoadResult, what: str) -> LoadResult:
    if result.error_count:
        raise UnexpectedAnswer(f"{what}: {dict(result.statuses)}, {result.broken_connections} connections broken")
    return result


def ratio(name: str, values: dict[str, float], *, at_least: float) -> list[Measurement]:
    if PEER not in values:
        return []
    return [Measurement(CASE, f"{name}, ratio", values[ASTERISM] / values[PEER], "x", at_least=at_least)]


async def measure_rates(
    kind: str,
    ports: dict[str, int],
    make_requests: Callable[[int], Iterator[bytes]],
    *,
    unit: str,
    at_least: float,
    rate_at_least: float | None = None,
    before_each: bytes | None = None,
) -> list[Measurement]:
    """Rounds of a load in turns, of each server the middle one; the ratio to the peer.

    `before_each`: a request that removes what the round before has left.
    """
    rounds: dict[str, list[LoadResult]] = {name: [] for name in ports}
    for number in range(ROUNDS):
        for name, port in ports.items():
            if before_each is not None:
                await call(port, before_each, 204)
            requests = make_requests(number)
            result = await run_load(
                port, requests, connections=CONNECTIONS, seconds=ROUND_SECONDS, warm_up_seconds=WARM_UP_SECONDS
            )
            rounds[name].append(checked(result, f"{kind}, {name}"))
    found = []
    rates = {}
    for name, several in rounds.items():
        result = middle(several)
        rates[name] = result.rate_per_second
        note = f"p50 {result.percentile_ms(50):.2f} ms, p99 {result.percentile_ms(99):.2f} ms"
        note += f", generator {result.generator_load:.0%}"
        promised = rate_at_least if name == ASTERISM else None
        found.append(Measurement(CASE, f"{kind}, {name}", rates[name], unit, at_least=promised, note=note))
    return [*found, *ratio(kind, rates, at_least=at_least)]
