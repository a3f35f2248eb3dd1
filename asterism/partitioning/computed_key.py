"""The partition key of a container some of whose levels are computed: which keys an item, or a request, stands for.

Usually that is one key. It is several under a drawn suffix, which a reader cannot know, and under a hashed suffix whose
count was raised, or whose source a request does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

from asterism.errors import MalformedRequest, PartitionKeyMismatch
from asterism.partitioning.even_draw import draw
from asterism.partitioning.key_parts import KeyRuleError
from asterism.partitioning.key_path import parse_key_path
from asterism.partitioning.partition_key import (
    CHARACTERS_SURELY_SHORT,
    Component,
    PartitionKey,
    PartitionKeyDefinition,
    as_component,
    extract,
    same_component,
    value_at,
)
from asterism.partitioning.synthetic_key import Bounds, KeyRule
from asterism.values.undefined import UNDEFINED

# The absent key, which clients send with a plain item; and the keys that it stands for before the item is seen.
_PLAIN_ITEM: Final[tuple[object, ...]] = ({},)
_OPEN_KEY: Final[list[PartitionKey]] = [(UNDEFINED,)]
# As many as there are parsed keys of requests, and as long.
_KEPT_NAMES_MAX: Final = 8192
_KEPT_CHARACTERS_MAX: Final = 256

NO_BOUNDS: Final[Mapping[tuple[str, ...], Bounds]] = {}


class ComputedKey:
    """The levels of a key definition, and the rules of those that are computed. Immutable."""

    __slots__ = ("_definition", "_drawn_level", "_levels", "_named", "_only_name", "_only_rule", "rules")

    def __init__(self, definition: PartitionKeyDefinition, rules: Mapping[str, KeyRule]) -> None:
        self.rules = rules
        self._definition = definition
        self._levels = [
            (segments, rules.get(path)) for path, segments in zip(definition.paths, definition.segments, strict=True)
        ]
        # The rule of a key with one level: nearly all of them, kept fast.
        self._only_rule = self._levels[0][1] if len(self._levels) == 1 else None
        segments = definition.segments[0]
        self._only_name = segments[0] if self._only_rule is not None and len(segments) == 1 else None
        # Texts that requests name one key by -> that key.
        self._named: dict[Sequence[object], list[PartitionKey]] = {}
        drawn = [
            (level, rule.suffix)
            for level, (_, rule) in enumerate(self._levels)
            if rule is not None and rule.suffix is not None and rule.suffix.of is None
        ]
        self._drawn_level = drawn[0] if drawn else None

    @classmethod
    def parse(cls, definition: PartitionKeyDefinition, rules: object) -> ComputedKey:
        """Read the rules of a container, by path of its key. Raises KeyRuleError."""
        if not isinstance(rules, Mapping) or not rules:
            raise KeyRuleError("'synthetic' must be an object with a rule for a path of the partition key.")
        if definition.system_key:
            raise KeyRuleError("A container without a partition key cannot have a synthetic one.")
        for path in rules:
            if path not in definition.paths:
                raise KeyRuleError(f"There is a rule for {path!r}, which is no path of the partition key.")
            if parse_key_path(path) == ("id",):
                raise KeyRuleError("The id of an item cannot be a synthetic key. Choose another path for it.")
        parsed = {path: KeyRule.parse(rule) for path, rule in rules.items()}
        _check_sources(parsed)
        if sum(rule.suffix is not None for rule in parsed.values()) > 1:
            raise KeyRuleError("Only one level of a partition key can have a suffix.")
        return cls(definition, parsed)

    def keys_of_new(self, keys: Sequence[PartitionKey], item_id: bytes) -> list[PartitionKey]:
        """Return, of the keys that an item may have, the one that it gets if it is new, and behind it those that it got
        under earlier counts of the suffix."""
        if self._drawn_level is None or len(keys) == 1:
            return list(keys)
        level, suffix = self._drawn_level
        definition = PartitionKeyDefinition((self._definition.paths[level],), version=self._definition.version)
        values = tuple([str(key[level]) for key in keys])
        # Suffixes are in the order of their numbers.
        places = [draw(definition, values[:count], item_id) for count in (suffix.count, *suffix.earlier_counts)]
        return [keys[place] for place in dict.fromkeys(places)]

    @property
    def is_drawn(self) -> bool:
        """True if which of its keys a new item gets is drawn; otherwise it gets the first."""
        return self._drawn_level is not None

    @property
    def source_paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths that the key is made of: those of plain levels, and the sources of computed ones."""
        paths: list[tuple[str, ...]] = []
        for segments, rule in self._levels:
            paths += [segments] if rule is None else [part.names for part in rule.source_parts]
        return tuple(paths)

    def to_json(self) -> dict[str, Any]:
        return {path: rule.to_json() for path, rule in self.rules.items()}

    def raised_from(self, before: ComputedKey) -> ComputedKey:
        """Return the rules as they follow others, which may differ in the counts of suffixes. Raises KeyRuleError."""
        if self.rules.keys() != before.rules.keys():
            raise KeyRuleError("The synthetic levels of a partition key cannot be changed.")
        raised = {path: rule.raised_from(before.rules[path]) for path, rule in self.rules.items()}
        return ComputedKey(self._definition, raised)

    # --- keys of items ----------------------------------------------------------------------------------------------

    def keys_of(self, item: Mapping[str, Any], named: Sequence[PartitionKey] | None = None) -> Sequence[PartitionKey]:
        """Return the keys that an item to be written may have, those for new items first. An item that has its
        synthetic property already must have one that the rule can give, and keeps it.

        `named` are the keys that the request names (`keys_named`); the absent value in them leaves a level open, and so
        does null, which the Python client sends for a level of a hierarchical key that an item lacks.
        """
        try:
            keys = self._keys_of(item)
        except KeyRuleError as error:
            raise MalformedRequest(reason=str(error)) from None
        if named is None or (len(named) == 1 and self._only_rule is not None and named[0][0] is UNDEFINED):
            return keys
        if len(named) == len(keys) == 1 and named[0] == keys[0] and type(named[0][0]) is str:
            # The client has named all sources: nearly every write that names any.
            return keys
        whole = {name for name in named if all(type(component) is str for component in name)}
        others = [name for name in named if name not in whole]
        agreeing = [key for key in keys if key in whole or any(self._agrees(name, key) for name in others)]
        if not agreeing:
            raise PartitionKeyMismatch
        return agreeing

    def _keys_of(self, item: Mapping[str, Any]) -> list[PartitionKey]:
        if self._only_rule is not None:
            name = self._only_name
            own = value_at(item, self._levels[0][0]) if name is None else item.get(name, UNDEFINED)
            return [(value,) for value in _level_values(self._only_rule, own, item)]
        own = extract(self._definition, item)
        values = [
            (component,) if rule is None else _level_values(rule, value_at(item, segments), item)
            for (segments, rule), component in zip(self._levels, own, strict=True)
        ]
        return list(product(*values))

    def accepts(self, item: Mapping[str, Any], key: PartitionKey) -> bool:
        """Return whether an item, with its synthetic properties or without, may have this very key."""
        try:
            return all(
                self._level_accepts(rule, value_at(item, segments), item, component)
                for (segments, rule), component in zip(self._levels, key, strict=True)
            )
        except KeyRuleError as error:
            raise MalformedRequest(reason=str(error)) from None

    def _level_accepts(
        self, rule: KeyRule | None, value: object, item: Mapping[str, Any], component: Component
    ) -> bool:
        if rule is None:
            return same_component(as_component(UNDEFINED if isinstance(value, dict | list) else value), component)
        return (value is UNDEFINED or value == component) and rule.accepts(item, component)

    def _agrees(self, named: PartitionKey, key: PartitionKey) -> bool:
        return len(named) == len(key) and all(
            same_component(name, component) or (_is_missing(name) and rule is not None)
            for name, component, (_, rule) in zip(named, key, self._levels, strict=True)
        )

    def fill(self, item: Mapping[str, Any], key: PartitionKey) -> dict[str, Any]:
        """Return the item with its synthetic properties, those of one of its keys; the item itself stays as it is."""
        filled = dict(item)
        if self._only_name is not None:
            if key[0] is not UNDEFINED:
                filled[self._only_name] = key[0]
            return filled
        for (segments, rule), component in zip(self._levels, key, strict=True):
            if rule is not None and component is not UNDEFINED:
                filled = put_value(filled, segments, component)
        return filled

    # --- keys of requests -------------------------------------------------------------------------------------------

    def keys_named(self, values: Sequence[object]) -> list[PartitionKey]:
        """Return the keys that the values of a request stand for: key values themselves, the values of the sources one
        by one, or a piece of an item that has them. A hierarchical key may be a prefix."""
        values = tuple(values)
        if values == _PLAIN_ITEM and self._only_rule is not None:
            return _OPEN_KEY
        if not all(type(value) is str for value in values):
            return self._keys_named(values)
        known = self._named.get(values)
        if known is None:
            known = self._keys_named(values)
            # Those of all suffixes are many, and the values are in the keys.
            if len(known) == 1 and sum(map(len, values)) <= _KEPT_CHARACTERS_MAX:  # type: ignore[arg-type]  # texts
                if len(self._named) >= _KEPT_NAMES_MAX:
                    self._named.clear()
                self._named[values] = known
        return known

    def _keys_named(self, values: Sequence[object]) -> list[PartitionKey]:
        try:
            if len(self._levels) == 1 and self._only_rule is not None and len(values) > 1:
                return [(as_component(value),) for value in self._only_rule.keys_of_values(values)]
            if not 0 < len(values) <= len(self._levels):
                raise PartitionKeyMismatch
            levels = [_values_named(rule, value) for (_, rule), value in zip(self._levels, values, strict=False)]
        except KeyRuleError as error:
            raise MalformedRequest(reason=str(error)) from None
        return list(product(*levels))

    def keys_of_known(
        self, known: Mapping[tuple[str, ...], object], bounds: Mapping[tuple[str, ...], Bounds] = NO_BOUNDS
    ) -> list[PartitionKey] | None:
        """Return the keys of all items whose properties have the known values, and lie between the bounds; None if that
        does not fix the key."""
        levels: list[Iterable[Component]] = []
        for segments, rule in self._levels:
            if segments in known:
                levels.append((as_component(known[segments]),))
                continue
            values = [] if rule is None else [known.get(part.names, UNDEFINED) for part in rule.source_parts]
            keys = None if rule is None else _keys_known(rule, values, bounds)
            if keys is None:
                # The first levels of a hierarchical key are enough for its prefix.
                break
            levels.append(keys)
        return list(product(*levels)) if levels else None


def keys_pinned(
    paths: tuple[tuple[str, ...], ...],
    computed: ComputedKey | None,
    pins_at: Callable[[tuple[tuple[str, ...], ...]], Sequence[tuple[object, ...]] | None],
    bounds: Callable[[], Mapping[tuple[str, ...], Bounds]],
) -> Sequence[tuple[object, ...]] | None:
    """Return the keys, or prefixes of them, that a filter leaves of a key with these paths: those it names, or those of
    the sources it fixes or bounds; None if it does neither. `pins_at` gives the values that it allows at some paths, or
    at the first of them, and `bounds` the least and the greatest value at each path that it bounds on both sides."""
    pins = pins_at(paths)
    if computed is None or (pins is not None and all(len(pin) == len(paths) for pin in pins)):
        return pins
    source_paths = computed.source_paths
    source_pins, within = pins_at(source_paths), bounds()
    if source_pins is None:
        if not within:
            return pins
        # Only one value at each path, because the first path is not pinned but bounded.
        single = {path: own[0][0] for path in source_paths if (own := pins_at((path,))) is not None and len(own) == 1}
        known = [single]
    else:
        known = [dict(zip(source_paths, pin, strict=False)) for pin in source_pins]
    keys: dict[PartitionKey, None] = {}
    for values in known:
        of_pin = computed.keys_of_known(values, within)
        if of_pin is None:
            return pins
        keys.update(dict.fromkeys(of_pin))
    return list(keys)


def put_value(item: dict[str, Any], segments: tuple[str, ...], value: object) -> dict[str, Any]:
    """Set a value in an item that is a copy already; the objects on the way are copied."""
    inner = item
    for name in segments[:-1]:
        held = inner.get(name)
        if held is not None and not isinstance(held, dict):
            raise MalformedRequest(
                reason=f"The synthetic partition key cannot be put below {name!r}, which is not an object."
            )
        inner[name] = inner = dict(held or {})
    inner[segments[-1]] = value
    return item


def _level_values(rule: KeyRule, own: object, item: Mapping[str, Any]) -> Iterable[Component]:
    """Return the values of a level for an item, which has the value `own` there or none."""
    if own is UNDEFINED:
        values = rule.keys_of(item)
        if not values:
            return (UNDEFINED,)
        # All have the same base, and the last has the longest suffix.
        if len(values[-1]) > CHARACTERS_SURELY_SHORT:
            as_component(values[-1])
        return values
    if not rule.accepts(item, own):
        raise PartitionKeyMismatch
    return (as_component(own),)


def _values_named(rule: KeyRule | None, value: object) -> list[Component]:
    if rule is None or value == {}:
        return [as_component(UNDEFINED if value == {} else value)]
    if isinstance(value, Mapping):
        values = [value_at(value, part.names) for part in rule.source_parts]
        return [as_component(key) for key in rule.keys_of_values(values)]
    return [as_component(key) for key in rule.keys_of_value(value)]


def _keys_known(
    rule: KeyRule, values: Sequence[object], bounds: Mapping[tuple[str, ...], Bounds]
) -> list[Component] | None:
    try:
        known = rule.keys_between(values, [bounds.get(part.names) for part in rule.source_parts])
    except KeyRuleError:
        # No item with such a value could be written.
        return []
    if known is None:
        return None
    keys: list[Component] = [as_component(key) for key in known]
    # Items that lack the source of the suffix may have the other values too.
    lacks_suffix = len(values) > len(rule.parts) and _is_missing(values[-1])
    return [*keys, UNDEFINED] if lacks_suffix and rule.missing == "absent" else keys


def _is_missing(value: object) -> bool:
    return value is None or value is UNDEFINED


def _check_sources(rules: Mapping[str, KeyRule]) -> None:
    """Refuse a rule that is made of a computed value: its own, or that of another, which may be made of it in turn."""
    computed = {parse_key_path(path): path for path in rules}
    for path, rule in rules.items():
        for part in rule.source_parts:
            for names, other in computed.items():
                shared = min(len(names), len(part.names))
                if names[:shared] != part.names[:shared]:
                    continue
                raise KeyRuleError(
                    f"The synthetic key {path} names itself as a source."
                    if other == path
                    else f"The synthetic key {path} is made of {other}, which is computed too: rules cannot name each "
                    f"other, or they could go in a circle. Name the sources of {other} instead."
                )
