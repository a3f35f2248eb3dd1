"""The usage of a container's or a table's partitions over time, for operators."""

from __future__ import annotations

from typing import Any

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import keyspace_of, query_parameters
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.keyspaces.processes.usage_history import SLOT_SECONDS, KeyspaceHistory
from asterism.partitioning.key_range import point_to_text
from asterism.throughput.usage_series import RangeSteps
from asterism.values.json.text import dumps

# The last hour, at the resolution of the samples.
SECONDS_DEFAULT = 3600
POINTS_DEFAULT = 360
# A year; the answer covers the history that is kept, however much is asked for.
SECONDS_MAX = 366 * 24 * 3600
# More points than a wide screen has pixels are not seen; they bound the work of an answer.
POINTS_MAX = 10_000


async def show_usage(services: AdminServices, request: Request) -> Response:
    """Describe the usage: current ranges in the order of the line, then those that are gone."""
    parameters = query_parameters(request)
    keyspace = keyspace_of(services, parameters)
    seconds = _whole_number(parameters, "seconds", SECONDS_DEFAULT, minimum=int(SLOT_SECONDS), maximum=SECONDS_MAX)
    points = _whole_number(parameters, "points", POINTS_DEFAULT, minimum=1, maximum=POINTS_MAX)
    history = services.history.of_keyspace(keyspace, seconds=seconds, points_max=points)
    current = [partition.id for partition in keyspace.record.map.ranges]
    gone = sorted(history.by_range.keys() - set(current))
    answer = {
        "step_seconds": history.step_seconds,
        "from": round(history.began_at, 3),
        "until": round(history.ended_at, 3),
        "ru_share": services.admission.share_of(keyspace),
        "history_seconds": services.history.history_seconds,
        "partitions": [
            *(_describe(range_id, history, is_current=True) for range_id in current),
            *(_describe(range_id, history, is_current=False) for range_id in gone),
        ],
        "growing": [
            {
                "effective_key": point_to_text(growth.effective_key),
                "bytes": growth.bytes,
                "bytes_per_second": round(growth.bytes_per_second, 3),
            }
            for growth in services.history.growing_keys(keyspace)
        ],
    }
    return Response(200, JSON_HEADERS, dumps(answer))


def _describe(range_id: int, history: KeyspaceHistory, *, is_current: bool) -> dict[str, Any]:
    served = history.by_range.get(range_id) or RangeSteps.empty(history.steps)
    return {
        "id": str(range_id),
        "is_current": is_current,
        "ru": [round(request_units, 2) for request_units in served.request_units],
        "throttled": served.throttled,
        "requests": served.requests,
    }


def _whole_number(parameters: dict[str, str], name: str, default: int, *, minimum: int, maximum: int) -> int:
    text = parameters.get(name, str(default))
    # Longer texts are beyond every maximum.
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else -1
    if not minimum <= value <= maximum:
        raise MalformedRequest(
            reason=f"'{name}' must be a whole number from {minimum} to {maximum}, such as {default}."
        )
    return value
