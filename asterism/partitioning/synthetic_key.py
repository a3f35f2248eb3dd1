"""The rule of a synthetic partition key: a value made of other properties of the item (spec K1 to K3).

A rule joins the texts of its parts, and may add a suffix: one of N by a draw, or the one that a hash of a property
gives. It is declared once, with the container, and applications that talk to the cloud service compute the same keys
with it (`asterism.keys`). Nothing here draws: a rule gives every key that an item may have, and the caller chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any, Final, Literal

import mmh3

from asterism.limits import SYNTHETIC_KEY_PARTS_MAX, SYNTHETIC_KEY_SUFFIXES_MAX
from asterism.partitioning.key_parts import (
    KeyPart,
    KeyRuleError,
    checked_path,
    refuse_unknown,
    whole_number_between,
)
from asterism.values.undefined import UNDEFINED

Missing = Literal["refuse", "absent"]
# The least and the greatest value that a filter allows.
Bounds = tuple[object, object]

_SEPARATOR: Final = "-"
_SUFFIX_SEPARATOR: Final = "."
_SEPARATOR_CHARACTERS_MAX = 16
# Each costs a further look-up for every create, and for reads of a hashed suffix.
_EARLIER_COUNTS_MAX = 8
_RULE_OPTIONS = ("parts", "separator", "suffix", "missing")
_SUFFIX_OPTIONS = ("kind", "path", "count", "separator", "earlierCounts")


@dataclass(frozen=True, slots=True)
class Suffix:
    """A number from 1 to `count` behind the base of a key: drawn, or the hash of the value at the path of `of`.

    `earlier_counts` are those that it had before its count was raised: items that were written then keep their keys.
    """

    count: int
    of: KeyPart | None = None
    separator: str = _SUFFIX_SEPARATOR
    earlier_counts: tuple[int, ...] = ()

    @classmethod
    def parse(cls, given: object) -> Suffix:
        if not isinstance(given, Mapping):
            raise KeyRuleError("The 'suffix' of a synthetic key must be an object with 'kind' and 'count'.")
        refuse_unknown(given, _SUFFIX_OPTIONS, what="The suffix of a synthetic key")
        count = whole_number_between(given.get("count"), 1, SYNTHETIC_KEY_SUFFIXES_MAX, what="A suffix's 'count'")
        separator = _separator_of(given, _SUFFIX_SEPARATOR)
        if not separator:
            raise KeyRuleError(
                "The 'separator' of a suffix cannot be empty: the suffix could not be told from the rest."
            )
        if separator[-1].isdigit():
            raise KeyRuleError("The 'separator' of a suffix cannot end with a digit: the suffix is a number.")
        match given.get("kind"):
            case "random":
                if given.get("path") is not None:
                    raise KeyRuleError("A random suffix has no 'path'. Use the kind 'hash' to compute it from one.")
                return cls(count, separator=separator, earlier_counts=_earlier_counts_of(given))
            case "hash":
                of = KeyPart(checked_path(given.get("path"), what="The suffix of a synthetic key"))
                return cls(count, of, separator, _earlier_counts_of(given))
            case kind:
                raise KeyRuleError(f"The kind {kind!r} of a suffix must be 'random' or 'hash'.")

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"kind": "random" if self.of is None else "hash"}
        if self.of is not None:
            shown["path"] = self.of.path
        shown |= {"count": self.count, "separator": self.separator}
        if self.earlier_counts:
            shown["earlierCounts"] = list(self.earlier_counts)
        return shown

    def numbers_of(self, value: object) -> Sequence[int]:
        """Return the suffixes that an item may have, newest first; `value` is that at the path of a hashed one."""
        if self.of is None or value is None or value is UNDEFINED:
            return range(1, self.count + 1)
        hashed = mmh3.hash(_utf8(self.of.text(value)), signed=False)
        if not self.earlier_counts:
            return (hashed % self.count + 1,)
        return tuple(dict.fromkeys(hashed % count + 1 for count in (self.count, *self.earlier_counts)))

    def base_of(self, key: str) -> str | None:
        """Return what stands before the suffix of a key; None if it has none of this kind."""
        base, separator, number = key.rpartition(self.separator)
        is_number = number.isascii() and number.isdigit() and number[0] != "0"
        return base if separator and is_number and int(number) <= self.count else None

    def raised_from(self, before: Suffix) -> Suffix:
        """Return this suffix with the counts that it had before; refuse any other change than a higher count."""
        if replace(before, count=self.count, earlier_counts=self.earlier_counts) != self:
            raise KeyRuleError("Only the 'count' of a suffix can be changed: other keys would not be found any more.")
        if self.count < before.count:
            raise KeyRuleError(
                f"The 'count' of a suffix cannot be lowered from {before.count} to {self.count}: items with the higher "
                "suffixes would not be found any more. Copy the container with `asterism rekey` instead."
            )
        earlier = before.earlier_counts if self.count == before.count else (before.count, *before.earlier_counts)
        if len(earlier) > _EARLIER_COUNTS_MAX:
            raise KeyRuleError(
                f"The 'count' of a suffix was raised {_EARLIER_COUNTS_MAX} times already; every create looks for the "
                "item by each of them. Copy the container with `asterism rekey` instead."
            )
        return replace(self, earlier_counts=earlier)


@dataclass(frozen=True, slots=True)
class KeyRule:
    """How one value of a partition key is made of an item. `missing` decides about an item that lacks a source."""

    parts: tuple[KeyPart, ...]
    separator: str = _SEPARATOR
    suffix: Suffix | None = None
    missing: Missing = "refuse"
    # The parts, and that of a hashed suffix behind them.
    source_parts: tuple[KeyPart, ...] = field(init=False, repr=False, compare=False)
    # The one part that the whole base is, if there are no others: nearly every suffixed and every bucketed key.
    _only_part: KeyPart | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        of = None if self.suffix is None else self.suffix.of
        object.__setattr__(self, "source_parts", self.parts if of is None else (*self.parts, of))
        object.__setattr__(self, "_only_part", self.parts[0] if len(self.parts) == 1 else None)

    @classmethod
    def parse(cls, given: object) -> KeyRule:
        """Read a rule as containers declare it, or raise KeyRuleError."""
        if not isinstance(given, Mapping):
            raise KeyRuleError("The rule of a synthetic key must be an object with 'parts'.")
        refuse_unknown(given, _RULE_OPTIONS, what="The rule of a synthetic key")
        parts = given.get("parts")
        if not isinstance(parts, list | tuple) or not 1 <= len(parts) <= SYNTHETIC_KEY_PARTS_MAX:
            raise KeyRuleError(
                f"The 'parts' of a synthetic key must be a list of 1 to {SYNTHETIC_KEY_PARTS_MAX} paths."
            )
        missing = given.get("missing", "refuse")
        if missing not in ("refuse", "absent"):
            raise KeyRuleError(f"'missing' is {missing!r}; it must be 'refuse' or 'absent'.")
        suffix = given.get("suffix")
        rule = cls(
            tuple(map(KeyPart.parse, parts)),
            _separator_of(given, _SEPARATOR),
            None if suffix is None else Suffix.parse(suffix),
            missing,
        )
        if len(set(rule.sources)) != len(rule.sources):
            raise KeyRuleError("A synthetic key names a path twice.")
        return rule

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"parts": [part.to_json() for part in self.parts], "separator": self.separator}
        if self.suffix is not None:
            shown["suffix"] = self.suffix.to_json()
        return {**shown, "missing": self.missing}

    @property
    def sources(self) -> tuple[str, ...]:
        """The paths that a key is made of; that of a hashed suffix is the last."""
        return tuple(part.path for part in self.source_parts)

    @property
    def is_random(self) -> bool:
        """True if which of its keys an item gets is drawn."""
        return self.suffix is not None and self.suffix.of is None

    # --- keys -------------------------------------------------------------------------------------------------------

    def keys_of(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        """Return every value that an item may have, the one of new items first (of a random suffix all are). Return
        none for an item without a source, if the rule counts it as one without a key."""
        values = []
        for part in self.source_parts:
            value = part.value_in(item)
            values.append(value)
            if value is None or value is UNDEFINED:
                if self.missing == "absent":
                    return ()
                raise KeyRuleError(
                    f"The item has no value at {part.path}, which its synthetic partition key is made of. Add it, or "
                    'declare the key with "missing": "absent".'
                )
        return self._keys_from(values)

    def keys_of_values(self, values: Sequence[object]) -> tuple[str, ...]:
        """Return the values that items have whose sources have these values, in the order of `sources`. Without the
        last one, that of a hashed suffix, these are all suffixes."""
        if len(values) < len(self.parts) or len(values) > len(self.source_parts):
            raise KeyRuleError(
                f"The partition key is made of {', '.join(self.sources)}. Name it with {len(self.source_parts)} "
                f"values, one for each, and not with {len(values)}."
            )
        for part, value in zip(self.parts, values, strict=False):
            if value is None or value is UNDEFINED:
                raise KeyRuleError(f"The partition key is made of {part.path}, for which the request names no value.")
        return self._keys_from(values)

    def keys_between(self, values: Sequence[object], bounds: Sequence[Bounds | None]) -> tuple[str, ...] | None:
        """Return the values that items have whose sources have these values, or lie between these bounds where a value
        is missing; None if these are too many, or cannot be told."""
        texts: list[Sequence[str]] = []
        count = 1 if self.suffix is None else len(self.suffix.numbers_of(values[-1]))
        for part, value, bound in zip(self.parts, values, bounds, strict=False):
            if value is not None and value is not UNDEFINED:
                texts.append((part.text(value),))
                continue
            count_max = SYNTHETIC_KEY_SUFFIXES_MAX // count
            between = None if bound is None else part.texts_between(*bound, count_max=count_max)
            if between is None:
                return None
            texts.append(between)
            count *= max(1, len(between))
        bases = [self.separator.join(combined) for combined in product(*texts)]
        if self.suffix is None:
            return tuple(bases)
        numbers = self.suffix.numbers_of(values[-1] if len(values) > len(self.parts) else UNDEFINED)
        return tuple(key for base in bases for key in self._with_suffixes(base, numbers))

    def keys_of_value(self, value: object) -> tuple[object, ...]:
        """Return the values that a single value of a request stands for: a value that the rule can give is itself;
        one without the suffix stands for all suffixes, and that of a single source for what it is written as."""
        suffix, only = self.suffix, self._only_part
        if suffix is not None and type(value) is str and suffix.base_of(value) is not None:
            return (value,)
        if value is None or value is UNDEFINED or isinstance(value, bool):
            return (value,)
        base = value
        if only is not None and not only.is_written(value):
            try:
                base = only.text(value)
            except KeyRuleError:
                return (value,)
        if suffix is None:
            return (base,)
        return self._with_suffixes(str(base), suffix.numbers_of(UNDEFINED))

    def accepts(self, item: Mapping[str, Any], value: object) -> bool:
        """Return whether an item may have this value. Suffixes are not counted out one by one."""
        if not isinstance(value, str):
            return value is UNDEFINED and not self.keys_of(item)
        if self.suffix is None or self.suffix.of is not None:
            return value in self.keys_of(item)
        values = [part.value_in(item) for part in self.parts]
        if any(source is None or source is UNDEFINED for source in values):
            return False
        return self.suffix.base_of(value) == self._base_from(values)

    def raised_from(self, before: KeyRule) -> KeyRule:
        """Return the rule as it follows `before`: with its suffix's earlier counts. Any other change is refused."""
        if self.suffix is None or before.suffix is None or replace(self, suffix=before.suffix) != before:
            if self == before:
                return before
            raise KeyRuleError(
                "The rule of a synthetic partition key cannot be changed, only the 'count' of its suffix raised. Copy "
                "the container with `asterism rekey` instead."
            )
        return replace(self, suffix=self.suffix.raised_from(before.suffix))

    def _keys_from(self, values: Sequence[object]) -> tuple[str, ...]:
        base = self._base_from(values)
        if self.suffix is None:
            return (base,)
        of_suffix = values[-1] if len(values) > len(self.parts) else UNDEFINED
        return self._with_suffixes(base, self.suffix.numbers_of(of_suffix))

    def _base_from(self, values: Sequence[object]) -> str:
        if self._only_part is not None:
            return self._only_part.text(values[0])
        return self.separator.join([part.text(value) for part, value in zip(self.parts, values, strict=False)])

    def _with_suffixes(self, base: str, numbers: Sequence[int]) -> tuple[str, ...]:
        assert self.suffix is not None
        front = base + self.suffix.separator
        if isinstance(numbers, range):
            return _with_all_suffixes(front, len(numbers))
        return tuple([front + str(number) for number in numbers])


# Many writes in a row have the same base, such as a day.
@lru_cache(maxsize=256)
def _with_all_suffixes(front: str, count: int) -> tuple[str, ...]:
    return tuple([front + str(number) for number in range(1, count + 1)])


def _separator_of(given: Mapping[str, Any], default: str) -> str:
    separator = given.get("separator", default)
    if not isinstance(separator, str) or len(separator) > _SEPARATOR_CHARACTERS_MAX:
        raise KeyRuleError(f"A 'separator' must be a text of at most {_SEPARATOR_CHARACTERS_MAX} characters.")
    return separator


def _earlier_counts_of(given: Mapping[str, Any]) -> tuple[int, ...]:
    earlier = given.get("earlierCounts", [])
    is_list = isinstance(earlier, list | tuple) and len(earlier) <= _EARLIER_COUNTS_MAX
    if not is_list or not all(type(each) is int and 1 <= each <= SYNTHETIC_KEY_SUFFIXES_MAX for each in earlier):
        raise KeyRuleError("The 'earlierCounts' of a suffix are kept by the server: leave them out, or as they are.")
    return tuple(earlier)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise KeyRuleError("A source of the synthetic partition key contains a lone surrogate.") from None
