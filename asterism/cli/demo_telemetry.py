"""The telemetry of the demonstration: readings of many devices, the same again for the same seed and start.

A reading goes to two containers. By its date it lies with all other readings of the day; by its device, with few.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

DEVICES: Final = 1_000
# Of the operations. Readers look at the latest readings, as a dashboard does.
READ_SHARE: Final = 0.2
_MILLISECONDS_BETWEEN_READINGS: Final = 20


@dataclass(frozen=True, slots=True)
class Operation:
    """An upsert of a reading, or a point read of one that was sent before."""

    is_read: bool
    reading: Mapping[str, Any]


class Telemetry:
    """All operations of a run, by number: several threads take their parts of it without a lock."""

    def __init__(self, *, seed: int, start: datetime) -> None:
        self._seed = seed
        self._start = start.astimezone(UTC)
        self._run = f"{self._start:%Y%m%dT%H%M%S}"
        # Every device reports in its turn.
        self._turns = random.Random(seed).sample(range(DEVICES), DEVICES)

    def operation(self, number: int) -> Operation:
        if self._is_read(number):
            return Operation(is_read=True, reading=self._reading(self._latest_write(number)))
        return Operation(is_read=False, reading=self._reading(number))

    def _is_read(self, number: int) -> bool:
        return number > 0 and random.Random(f"{self._seed}/{number}/kind").random() < READ_SHARE

    def _latest_write(self, number: int) -> int:
        return next(earlier for earlier in range(number, -1, -1) if not self._is_read(earlier))

    def _reading(self, number: int) -> dict[str, Any]:
        chance = random.Random(f"{self._seed}/{number}")
        at = self._start + timedelta(milliseconds=number * _MILLISECONDS_BETWEEN_READINGS)
        return {
            "id": f"{self._run}-{number}",
            "deviceId": f"device-{self._turns[number % DEVICES]}",
            # Of the start: a run through midnight still has a single day.
            "date": self._start.date().isoformat(),
            "at": at.isoformat(timespec="milliseconds"),
            "temperatureCelsius": round(chance.gauss(21.0, 4.0), 2),
            "humidityPercent": round(chance.uniform(20.0, 80.0), 1),
            "batteryVolts": round(chance.uniform(2.9, 4.2), 3),
        }
