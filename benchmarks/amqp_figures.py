"""Names and promises of the figures for AMQP, and what their parts share."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import median

from asterism.values.amqp.message import Header, Properties, encode_data_body, encode_header, encode_properties
from benchmarks.amqp_frames import BATCH_FORMAT, TransferTemplate
from benchmarks.measurement import Measurement

CASE = "amqp"
ASTERISM, BARE, PEER = "asterism", "bare", "rabbitmq"
ROUNDS = 3
WINDOW = 100
# Of a load with a window, and of one that waits for each message.
COUNT, COUNT_ONE_BY_ONE = 20_000, 1_000
CLIENTS = 4
# Messages of a batch, with which backlogs are made: as many as fit into the frames that servers take.
BATCH = 50

HUB_AT_LEAST, QUEUE_AT_LEAST = 0.5, 0.35
QUEUE_RATE_AT_LEAST, HUB_RATE_AT_LEAST = 10_000.0, 15_000.0
ONE_BY_ONE_AT_LEAST = 1.0
# A peer that synchronizes its files less often for each message confirms what a loss of power may take.
SYNCS_AT_LEAST = 0.9
TOPIC_AT_LEAST = 0.3
SUBSCRIPTIONS = 10
BACKLOG_AT_LEAST = 0.8

_BODY = b"m" * 1024


def _properties() -> Properties:
    empty = Properties(*[None] * len(Properties._fields))
    return empty._replace(message_id="0123456789abcdef0123456789abcdef")


MESSAGE = (
    encode_header(Header(True, None, None, None, None)) + encode_properties(_properties()) + encode_data_body(_BODY)
)
TEMPLATE = TransferTemplate(MESSAGE)
BATCH_TEMPLATE = TransferTemplate(encode_data_body(MESSAGE) * BATCH, message_format=BATCH_FORMAT)


async def rate(load: Awaitable[object], count: int) -> float:
    """Return how many of so many messages a load takes a second."""
    begun = time.perf_counter()
    await load
    return count / (time.perf_counter() - begun)


async def rates_in_turns(loads: Mapping[str, Callable[[], Awaitable[float]]]) -> dict[str, float]:
    """Run the loads in turns, so that other work on the machine disturbs all; return the median of each."""
    found: dict[str, list[float]] = {name: [] for name in loads}
    for _ in range(ROUNDS):
        for name, load in loads.items():
            found[name].append(await load())
    return {name: median(rates) for name, rates in found.items()}


def rate_figures(
    kind: str, rates: Mapping[str, float], *, unit: str = "messages/s", note: str = ""
) -> list[Measurement]:
    return [Measurement(CASE, f"{kind}, {name}", value, unit, note=note) for name, value in rates.items()]


def ratio_figure(
    kind: str, rates: Mapping[str, float], *, to: str, at_least: float | None, note: str = ""
) -> list[Measurement]:
    """Return the ratio of Asterism's rate to another's, if that was measured."""
    if to not in rates:
        return []
    name = f"{kind}, ratio to {to}"
    return [Measurement(CASE, name, rates[ASTERISM] / rates[to], "x", at_least=at_least, note=note)]


def keeps_figure(kind: str, *, before: float, after: float, note: str) -> Measurement:
    """Return the ratio of a rate behind a backlog to that without."""
    return Measurement(CASE, kind, after / before, "x", at_least=BACKLOG_AT_LEAST, note=note)
