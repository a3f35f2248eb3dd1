"""Time zones by name (the Olson database) and by offset: `America/New_York`, `+05:30`, `-0530`, `+03`."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Protocol

from asterism.languages.mongo.expressions import calendar
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name

_NOT_TEXT = 40517
_UNKNOWN = 40485
# Hours and minutes are not bounded by 24 and 60: "+99:99" is accepted.
_OFFSET = re.compile(r"([+-])([0-9]{2})(?::?([0-9]{2}))?\Z", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_HERE: Final = datetime(1970, 1, 1)
_CYCLE_MILLISECONDS: Final = calendar.CYCLE_DAYS * calendar.MILLISECONDS_PER_DAY
# Dates are asked for within a cycle of years that `datetime` can name, with a day to spare on either side.
_DATETIME_MIN: Final = calendar.day_number(1, 1, 3) * calendar.MILLISECONDS_PER_DAY
_DATETIME_MAX: Final = calendar.day_number(9999, 12, 29) * calendar.MILLISECONDS_PER_DAY


class Zone(Protocol):
    is_utc: bool

    def offset_at(self, milliseconds: int) -> int:
        """Milliseconds to add to the UTC time `milliseconds` to get local time."""

    def to_utc(self, local_milliseconds: int) -> int:
        """The UTC time of a local time: the first where clocks are turned back, and the time as much after the gap as
        it is after its beginning where clocks are turned forward."""


class FixedZone:
    def __init__(self, offset_milliseconds: int, *, is_utc: bool = False) -> None:
        self._offset = offset_milliseconds
        self.is_utc = is_utc

    def offset_at(self, milliseconds: int) -> int:
        return self._offset

    def to_utc(self, local_milliseconds: int) -> int:
        return local_milliseconds - self._offset


class NamedZone:
    is_utc = False

    def __init__(self, zone: zoneinfo.ZoneInfo) -> None:
        self._zone = zone

    def offset_at(self, milliseconds: int) -> int:
        moment = _EPOCH + timedelta(milliseconds=_within_datetime(milliseconds))
        return _milliseconds(moment.astimezone(self._zone).utcoffset())

    def to_utc(self, local_milliseconds: int) -> int:
        moment = _EPOCH_HERE + timedelta(milliseconds=_within_datetime(local_milliseconds))
        return local_milliseconds - _milliseconds(moment.replace(tzinfo=self._zone).utcoffset())


UTC_ZONE: Final = FixedZone(0, is_utc=True)
_UTC_NAMES: Final = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT"})


def _within_datetime(milliseconds: int) -> int:
    if milliseconds < _DATETIME_MIN:
        return _DATETIME_MIN + (milliseconds - _DATETIME_MIN) % _CYCLE_MILLISECONDS
    if milliseconds > _DATETIME_MAX:
        return _DATETIME_MAX - _CYCLE_MILLISECONDS + (milliseconds - _DATETIME_MAX) % _CYCLE_MILLISECONDS
    return milliseconds


def _milliseconds(offset: timedelta | None) -> int:
    assert offset is not None
    return offset // timedelta(milliseconds=1)


def zone_of(value: Any) -> Zone:
    """The zone of the value of a `timezone` argument that is not null."""
    if type(value) is not str:
        raise MongoFailure(_NOT_TEXT, f"timezone must evaluate to a string, found {type_name(value)}")
    zone = find_zone(value)
    if zone is None:
        raise MongoFailure(_UNKNOWN, f'unrecognized time zone identifier: "{value}"')
    return zone


@lru_cache(maxsize=1024)
def find_zone(name: str) -> Zone | None:
    if name in _UTC_NAMES:
        return UTC_ZONE
    offset = _OFFSET.match(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        size = int(hours) * calendar.MILLISECONDS_PER_HOUR + int(minutes or 0) * calendar.MILLISECONDS_PER_MINUTE
        return FixedZone(-size if sign == "-" else size)
    # The names of the database are the ones of files: a text that is not one would be looked for on the disk.
    if name not in _names():
        return None
    return NamedZone(zoneinfo.ZoneInfo(name))


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())
