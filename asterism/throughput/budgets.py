"""Provisioned throughput: its permitted values, and each partition's share of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from asterism.errors import ThroughputRefused
from asterism.limits import GIB, Limits

# The service's increments and minimums.
MANUAL_STEP_RU = 100
AUTOSCALE_STEP_RU = 1_000
AUTOSCALE_MAX_RU_MIN = 1_000
_MANUAL_RU_MIN = 400
# A database whose containers share its throughput needs 100 RU/s more for each container beyond this many.
_SHARING_CONTAINERS_FREE = 25
# Autoscale varies between a tenth of its maximum and the maximum.
_AUTOSCALE_FLOOR_DIVISOR = 10


@dataclass(frozen=True, slots=True)
class Manual:
    ru_per_second: int


@dataclass(frozen=True, slots=True)
class Autoscale:
    max_ru_per_second: int
    # Percentage by which the service raises the maximum automatically as storage grows; kept for clients that set it.
    increment_percent: int = 0


Throughput = Manual | Autoscale


def effective_ru(throughput: Throughput) -> int:
    """Return the RU/s that a keyspace may use in one second."""
    match throughput:
        case Manual(ru_per_second):
            return ru_per_second
        case Autoscale(max_ru_per_second):
            return max_ru_per_second
        case _:
            assert_never(throughput)


def share_per_partition(throughput: Throughput, partitions: int) -> float:
    """Return an even share, independent of the partitions' data (spec C11)."""
    return effective_ru(throughput) / partitions


def scaled_ru(throughput: Throughput, *, observed_ru_per_second: float) -> int:
    """Return the RU/s billed for a period in which at most `observed_ru_per_second` were used."""
    match throughput:
        case Manual(ru_per_second):
            return ru_per_second
        case Autoscale(max_ru_per_second):
            floor_ru = max_ru_per_second // _AUTOSCALE_FLOOR_DIVISOR
            return min(max_ru_per_second, max(floor_ru, math.ceil(observed_ru_per_second)))
        case _:
            assert_never(throughput)


def minimum_ru(*, stored_bytes: int, highest_ever_ru: int, databases_containers: int = 0) -> int:
    """Return the lowest manual RU/s: 400, 1 per GB stored, a hundredth of the highest ever; in increments of 100.

    `databases_containers` is the number of containers that share the throughput, 0 for a container's own.
    """
    sharing = max(0, databases_containers - _SHARING_CONTAINERS_FREE) * MANUAL_STEP_RU
    gigabytes = -(-stored_bytes // GIB)
    return _round_up(max(_MANUAL_RU_MIN + sharing, gigabytes, -(-highest_ever_ru // 100)), MANUAL_STEP_RU)


def minimum_autoscale_max_ru(*, stored_bytes: int, highest_ever_ru: int, databases_containers: int = 0) -> int:
    """Return the lowest maximum of autoscale: 1,000, or ten times the manual minimum for the same data and history."""
    sharing = max(0, databases_containers - _SHARING_CONTAINERS_FREE) * AUTOSCALE_STEP_RU
    gigabytes = -(-stored_bytes // GIB)
    wanted = max(AUTOSCALE_MAX_RU_MIN + sharing, gigabytes * 10, -(-highest_ever_ru // 10))
    return _round_up(wanted, AUTOSCALE_STEP_RU)


def _round_up(ru: int, step: int) -> int:
    return -(-ru // step) * step


def validate(throughput: Throughput, limits: Limits, minimum: int) -> None:
    """Raise ThroughputRefused as the service does. `minimum` is `minimum_ru`, or `minimum_autoscale_max_ru`."""
    ru_max = limits.throughput_ru_per_second_max
    match throughput:
        case Manual(ru_per_second):
            ru_min = max(minimum, limits.throughput_ru_per_second_min)
            _check("The offer's throughput", ru_per_second, ru_min=ru_min, ru_max=ru_max, step=MANUAL_STEP_RU)
        case Autoscale(max_ru_per_second, increment_percent):
            ru_min, step = max(minimum, AUTOSCALE_MAX_RU_MIN), AUTOSCALE_STEP_RU
            _check("The offer's maximum throughput", max_ru_per_second, ru_min=ru_min, ru_max=ru_max, step=step)
            if increment_percent < 0:
                raise ThroughputRefused(reason="The offer's increment percent must not be negative.")
        case _:
            assert_never(throughput)


def _check(subject: str, ru: int, *, ru_min: int, ru_max: int, step: int) -> None:
    if ru < ru_min:
        raise ThroughputRefused(reason=f"Requested throughput {ru} is less than required minimum throughput {ru_min}.")
    if ru > ru_max or ru % step:
        raise ThroughputRefused(
            reason=f"{subject} must be between {ru_min} and {ru_max} RU/s inclusive, in increments of {step}; not {ru}."
        )


def to_json(throughput: Throughput) -> dict[str, object]:
    match throughput:
        case Manual(ru_per_second):
            return {"kind": "manual", "ruPerSecond": ru_per_second}
        case Autoscale(max_ru_per_second, increment_percent):
            return {"kind": "autoscale", "maxRuPerSecond": max_ru_per_second, "incrementPercent": increment_percent}
        case _:
            assert_never(throughput)


def from_json(record: Mapping[str, Any]) -> Throughput:
    if record["kind"] == "autoscale":
        return Autoscale(record["maxRuPerSecond"], record["incrementPercent"])
    return Manual(record["ruPerSecond"])
