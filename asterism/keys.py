"""Synthetic partition keys as functions over dicts, for applications that talk to the cloud service too.

A container of Asterism computes such a key by itself. An application computes the same one with this module, byte for
byte, and sends it as an ordinary property to a service that knows no rules. Nothing here needs a server; beyond the
standard library it needs mmh3.

    from asterism import keys

    rule = keys.hash_suffix("/date", of="/vin", count=400)
    item = keys.fill({"id": "1", "date": "2026-01-31", "vin": "WDB123"}, {"/partitionKey": rule})
    container.upsert_item(item)                                  # item["partitionKey"] is "2026-01-31.217"
    container.read_item("1", rule.keys_of(item)[0])
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from asterism.partitioning.computed_key import put_value
from asterism.partitioning.key_parts import Bucket, KeyPart, KeyRuleError, Unit
from asterism.partitioning.key_path import parse_key_path
from asterism.partitioning.partition_key import value_at
from asterism.partitioning.synthetic_key import KeyRule, Missing, Suffix
from asterism.values.undefined import UNDEFINED

__all__ = [
    "KeyPart",
    "KeyRule",
    "KeyRuleError",
    "Suffix",
    "concatenate",
    "fill",
    "hash_suffix",
    "random_suffix",
    "time_bucket",
]


def concatenate(*parts: str | KeyPart, separator: str = "-", missing: Missing = "refuse") -> KeyRule:
    """Join properties: `concatenate("/deviceId", "/date")` gives `abc-123-2018`."""
    return _rule({"parts": _written(parts), "separator": separator, "missing": missing})


def random_suffix(
    *parts: str | KeyPart, count: int, separator: str = "-", suffix_separator: str = ".", missing: Missing = "refuse"
) -> KeyRule:
    """Add one of `count` suffixes by a draw: writes of one value spread, readers ask all of them."""
    suffix = {"kind": "random", "count": count, "separator": suffix_separator}
    return _rule({"parts": _written(parts), "separator": separator, "suffix": suffix, "missing": missing})


def hash_suffix(
    *parts: str | KeyPart,
    of: str,
    count: int,
    separator: str = "-",
    suffix_separator: str = ".",
    missing: Missing = "refuse",
) -> KeyRule:
    """Add the suffix that a hash of the property `of` gives: writes spread, and readers that know it ask one."""
    suffix = {"kind": "hash", "path": of, "count": count, "separator": suffix_separator}
    return _rule({"parts": _written(parts), "separator": separator, "suffix": suffix, "missing": missing})


def time_bucket(
    path: str, bucket: Bucket, *, unit: Unit = "s", format: str | None = None, missing: Missing = "refuse"
) -> KeyRule:
    """Roll a time stamp up to its hour, day or month, in UTC."""
    part = {"path": path, "bucket": bucket, "unit": unit, "format": format}
    return _rule({"parts": [part], "missing": missing})


def fill(
    item: Mapping[str, Any], rules: Mapping[str, KeyRule], *, draw: Callable[[int], int] = random.randrange
) -> dict[str, Any]:
    """Return the item with its synthetic properties, by path. A value that it has already is kept if the rule can have
    given it, so that a drawn suffix stays; `draw(n)` gives a number below n."""
    filled = dict(item)
    for path, rule in rules.items():
        names = parse_key_path(path)
        own = value_at(item, names)
        if own is not UNDEFINED:
            if not rule.accepts(item, own):
                raise KeyRuleError(f"The value at {path} is not one that its rule gives this item.")
            continue
        candidates = rule.keys_of(item)
        if candidates:
            filled = put_value(filled, names, candidates[draw(len(candidates)) if rule.is_random else 0])
    return filled


def _rule(given: Mapping[str, Any]) -> KeyRule:
    return KeyRule.parse(given)


def _written(parts: tuple[str | KeyPart, ...]) -> list[object]:
    return [part.to_json() if isinstance(part, KeyPart) else part for part in parts]
