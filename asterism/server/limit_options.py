"""`--limit NAME=VALUE`: the limits of the database and those of its doors, as an operator changes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asterism.apis.door_spec import DoorSpec
from asterism.apis.settings import StartRefused
from asterism.limits import DEFAULT_LIMITS, GIB, KIB, MIB, Limits, limit_helps

_UNIT_BYTES = {"": 1, "B": 1, "KB": KIB, "MB": MIB, "GB": GIB}
_AMOUNT = re.compile(r"([0-9]+) ?([KMG]?B|)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GivenLimits:
    """The limits of the database, and the fields to change in the settings of doors, by the name of the door."""

    limits: Limits
    of_doors: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class LimitField:
    """The field that holds a limit: of the settings of a door, or of `Limits`."""

    # None for a field of `Limits`.
    door: str | None
    name: str


def limit_names(declared_in: type[Any] = Limits) -> dict[str, str]:
    """Return the fields of limits by their names for `--limit`, without `-max` where the name is clear without it."""
    names = list(limit_helps(declared_in))
    stems = [name.removesuffix("_max").removesuffix("_min") for name in names]
    clear = {stem for stem in stems if stems.count(stem) == 1}
    return {(stem if stem in clear else name).replace("_", "-"): name for name, stem in zip(names, stems, strict=True)}


def all_limits(doors: Sequence[DoorSpec[Any]]) -> dict[str, LimitField]:
    """Return every limit by its name, those of the database first."""
    known = {name: LimitField(None, field) for name, field in limit_names().items()}
    for door in doors:
        known |= {name: LimitField(door.name, field) for name, field in limit_names(door.settings).items()}
    return known


def read_limits(given: Sequence[str], doors: Sequence[DoorSpec[Any]]) -> GivenLimits:
    """Read texts such as `logical-partition-bytes=64KB`; the last of several with one name counts."""
    known = all_limits(doors)
    changes = dict(_read_limit(text, known) for text in given)
    limits = DEFAULT_LIMITS.with_changes(**{place.name: value for place, value in changes.items() if not place.door})
    if limits.item_bytes_max > limits.request_bytes_max:
        raise StartRefused("the limit item-bytes is above request-bytes, so no such item could arrive; raise both")
    if limits.throughput_ru_per_second_min > limits.throughput_ru_per_second_max:
        raise StartRefused("the limit throughput-ru-per-second-min is above throughput-ru-per-second-max")
    of_doors = {
        door.name: {place.name: value for place, value in changes.items() if place.door == door.name} for door in doors
    }
    return GivenLimits(limits, of_doors)


def parse_limits(given: Sequence[str]) -> Limits:
    """Return the limits of the database alone."""
    return read_limits(given, ()).limits


def _read_limit(given: str, known: Mapping[str, LimitField]) -> tuple[LimitField, int]:
    name, equals, amount_text = (part.strip() for part in given.partition("="))
    if not equals:
        raise StartRefused(f"the limit {given!r} has no value; write NAME=VALUE, for example item-bytes=64KB")
    place = known.get(name) or known.get(name.removesuffix("-max"))
    if place is None:
        raise StartRefused(f"there is no limit {name!r}; the limits are {', '.join(known)}")
    amount = _AMOUNT.fullmatch(amount_text)
    if amount is None or (amount[2] and "bytes" not in place.name):
        unit = " with B, KB, MB or GB behind it or nothing" if "bytes" in place.name else ""
        raise StartRefused(f"the limit {name} is {amount_text!r}; it must be a whole number{unit}")
    value = int(amount[1]) * _UNIT_BYTES[amount[2].upper()]
    # Sizes are kept in signed 64-bit counters.
    if not 0 < value < 2**62:
        raise StartRefused(f"the limit {name} is {amount_text!r}; it must be above 0 and below 2**62")
    return place, value
