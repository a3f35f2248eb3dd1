"""A candidate for the partition key of a container: its definition, the keys it gives to items, and the keys that a
request reaches which knows some values.

A candidate is the JSON that a container would be created with, rules of synthetic keys included. Its keys are those of
`asterism.partitioning`, so what is computed here is what the server does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final, Literal, cast

from asterism.limits import PARTITION_KEY_LEVELS_MAX
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.key_parts import KeyPart, KeyRuleError
from asterism.partitioning.key_path import parse_key_path
from asterism.partitioning.partition_key import Component, PartitionKey, PartitionKeyDefinition, value_at
from asterism.partitioning.synthetic_key import KeyRule
from asterism.values.undefined import UNDEFINED

# The property of a synthetic key, which items of other programs hardly have.
SYNTHETIC_PATH: Final = "/partitionKey"
# A request that would have to ask more keys asks all partitions instead.
ROUTES_MAX: Final = 1_000

Kind = Literal["plain", "hierarchical", "synthetic"]
# Returns a number from 0 to below its argument.
Draw = Callable[[int], int]
# Values by path: all that the value at the path may be.
KnownValues = Mapping[str, Sequence[Component]]
# The lowest and the highest value at a path, None where there is no bound.
BetweenValues = Mapping[str, Sequence[Component]]

_NO_BOUNDS: Final[BetweenValues] = {}
_UNKNOWN: Final[Sequence[Component]] = (UNDEFINED,)


def first_of(_count: int) -> int:
    """Draw nothing: take the first."""
    return 0


@dataclass(frozen=True, slots=True)
class CandidateKey:
    """A partition key definition under a name for people, such as `/tenantId, /userId` or `/day . hash(/vin) % 40`."""

    name: str
    definition: Mapping[str, Any] = field(hash=False)
    parsed: PartitionKeyDefinition = field(init=False, repr=False, compare=False)
    _levels: tuple[_PlainLevel | _RuleLevel, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rules = self.definition.get("synthetic") or {}
        plain = {name: value for name, value in self.definition.items() if name != "synthetic"}
        parsed = PartitionKeyDefinition.parse(plain)
        levels = [
            _RuleLevel(KeyRule.parse(rules[path])) if path in rules else _PlainLevel(path) for path in parsed.paths
        ]
        object.__setattr__(self, "parsed", parsed)
        object.__setattr__(self, "_levels", tuple(levels))

    @classmethod
    def of_paths(cls, *paths: str) -> CandidateKey:
        """Return the key at a path, or the hierarchical one of several."""
        kind = "Hash" if len(paths) == 1 else "MultiHash"
        return cls(", ".join(paths), {"paths": list(paths), "kind": kind, "version": 2})

    @classmethod
    def of_rule(cls, rule: KeyRule) -> CandidateKey:
        definition = {"paths": [SYNTHETIC_PATH], "kind": "Hash", "version": 2}
        return cls(rule_name(rule), {**definition, "synthetic": {SYNTHETIC_PATH: rule.to_json()}})

    @classmethod
    def of_definition(cls, definition: Mapping[str, Any]) -> CandidateKey:
        """Return the candidate of a definition as containers have it."""
        rules = definition.get("synthetic") or {}
        names = [rule_name(KeyRule.parse(rules[path])) if path in rules else path for path in definition["paths"]]
        return cls(", ".join(names), definition)

    @property
    def kind(self) -> Kind:
        if any(isinstance(level, _RuleLevel) for level in self._levels):
            return "synthetic"
        return "plain" if len(self._levels) == 1 else "hierarchical"

    @property
    def sources(self) -> tuple[str, ...]:
        """The paths that the key is made of."""
        return tuple(dict.fromkeys(path for level in self._levels for path in level.sources))

    @property
    def rule(self) -> KeyRule | None:
        """The first rule of a synthetic key."""
        return next((level.rule for level in self._levels if isinstance(level, _RuleLevel)), None)

    @property
    def suffix_count(self) -> int:
        """The number of suffixes of one value; 1 without a suffix."""
        suffix = None if self.rule is None else self.rule.suffix
        return 1 if suffix is None else suffix.count

    @property
    def is_random(self) -> bool:
        return self.rule is not None and self.rule.is_random

    # --- keys of items ----------------------------------------------------------------------------------------------

    def key_of(self, item: Mapping[str, Any], *, draw: Draw = first_of) -> PartitionKey:
        """Return the item's key; UNDEFINED where a level has no value. `draw` chooses among random suffixes."""
        return tuple([level.value_of(level.values_in(item), draw) for level in self._levels])

    def key_of_values(self, values: Mapping[str, Component], *, draw: Draw = first_of) -> PartitionKey:
        """Return the key of an item with these values by path, as requests and profiles carry them."""
        found = values.get
        if len(self._levels) == 1:
            level = self._levels[0]
            return (level.value_of([found(path, UNDEFINED) for path in level.sources], draw),)
        return tuple(
            [level.value_of([found(path, UNDEFINED) for path in level.sources], draw) for level in self._levels]
        )

    def point(self, key: PartitionKey) -> bytes:
        """Return the place of a key, or of the first levels of one, on the hash line."""
        return storage_point(self.parsed, key)

    # --- keys of requests -------------------------------------------------------------------------------------------

    def routes_of(self, known: KnownValues, between: BetweenValues = _NO_BOUNDS) -> list[PartitionKey] | None:
        """Return the keys that a request reaches which knows these values, or None for a fan-out over all partitions.

        With the first levels of a hierarchical key alone, the keys are prefixes. A level is not known either if there
        would be more keys than `ROUTES_MAX`.
        """
        if len(self._levels) == 1:
            found = self._levels[0].values_known(known, between)
            return None if found is None or len(found) > ROUTES_MAX else [(value,) for value in dict.fromkeys(found)]
        values: list[Sequence[Component]] = []
        count = 1
        for level in self._levels:
            found = level.values_known(known, between)
            if found is None or count * len(found) > ROUTES_MAX:
                break
            count *= len(found)
            values.append(found)
        if not values:
            return None
        return list(dict.fromkeys(product(*values)))


class _PlainLevel:
    """A level of a key that is the value at a path."""

    __slots__ = ("_names", "sources")

    def __init__(self, path: str) -> None:
        self.sources = (path,)
        self._names = parse_key_path(path)

    def values_in(self, item: Mapping[str, Any]) -> list[object]:
        return [value_at(item, self._names)]

    def value_of(self, values: Sequence[object], draw: Draw) -> Component:  # noqa: ARG002
        value = values[0]
        return UNDEFINED if isinstance(value, dict | list) else cast(Component, value)

    def values_known(self, known: KnownValues, between: BetweenValues) -> Sequence[Component] | None:  # noqa: ARG002
        return known.get(self.sources[0])


class _RuleLevel:
    """A level of a key that a rule computes."""

    __slots__ = ("_base", "_parts", "rule", "sources")

    def __init__(self, rule: KeyRule) -> None:
        self.rule = rule
        self.sources = rule.sources
        self._parts = rule.source_parts
        # Of a random suffix one is drawn; making all of them for each item would take a hundred times as long.
        self._base = replace(rule, suffix=None) if rule.is_random else rule

    def values_in(self, item: Mapping[str, Any]) -> list[object]:
        return [part.value_in(item) for part in self._parts]

    def value_of(self, values: Sequence[object], draw: Draw) -> Component:
        if UNDEFINED in values or None in values:
            return UNDEFINED
        try:
            key = self._base.keys_of_values(values)[0]
        except KeyRuleError:
            return UNDEFINED
        suffix = self.rule.suffix
        if suffix is None or suffix.of is not None:
            return key
        return f"{key}{suffix.separator}{draw(suffix.count) + 1}"

    def values_known(self, known: KnownValues, between: BetweenValues) -> Sequence[Component] | None:
        choices = [known.get(path, _UNKNOWN) for path in self.sources]
        count = 1
        for values in choices:
            count *= len(values)
        if count > ROUTES_MAX:
            return None
        bounds = [_bounds_at(part.path, between) for part in self._parts]
        keys: dict[Component, None] = {}
        for combined in product(*choices):
            try:
                found = self.rule.keys_between(combined, bounds)
            except KeyRuleError:
                return None
            if found is None or len(keys) > ROUTES_MAX:
                return None
            keys.update(dict.fromkeys(found))
        return list(keys)


def _bounds_at(path: str, between: BetweenValues) -> tuple[Component, Component] | None:
    bounds = between.get(path)
    if bounds is None or bounds[0] is None or bounds[1] is None:
        return None
    return bounds[0], bounds[1]


def rule_name(rule: KeyRule) -> str:
    """Return a synthetic key in one line: `/deviceId + day(/at)`, `/day . hash(/vin) % 40`."""
    base = " + ".join(_part_name(part) for part in rule.parts)
    suffix = rule.suffix
    if suffix is None:
        return base
    if suffix.of is None:
        return f"{base} . random {suffix.count}"
    return f"{base} . hash({suffix.of.path}) % {suffix.count}"


def _part_name(part: KeyPart) -> str:
    if part.bucket is not None:
        return f"{part.bucket}({part.path})"
    return part.path if part.format is None else f"{part.format}({part.path})"


def paths_of(given: str) -> tuple[str, ...]:
    """Return the paths of a key as people write it: `/tenantId` or `/tenantId,/userId`."""
    paths = tuple(path.strip() for path in given.split(",") if path.strip())
    if not 1 <= len(paths) <= PARTITION_KEY_LEVELS_MAX or not all(path.startswith("/") for path in paths):
        raise ValueError(
            f"{given!r} is not a partition key; write /path, or up to three paths with commas between them"
        )
    return paths
