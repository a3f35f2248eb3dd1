"""The rules by which a keyspace forwards some of its logical partitions to another keyspace.

A rule covers all points that begin with a prefix: one logical partition, or those below a prefix of a hierarchical key.
It is part of the keyspace's record, so that every process decides a request by the same rules as by the settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from asterism.values.records import StoredRecord


class ForwardingState(StrEnum):
    """The stages of a rule. Both sides are equal from the second on until a write is applied to the target."""

    # Writes wait; reads are still answered from the keyspace itself.
    FENCED = "fenced"
    # Writes wait; reads are answered from the target.
    HANDED_OVER = "handed over"
    # Reads and writes go to the target.
    FORWARDING = "forwarding"
    # Writes are refused; reads find nothing.
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ForwardingRule(StoredRecord):
    # The number of the job that made the rule.
    number: int
    prefix: bytes
    # The partition key as messages show it, with {} for an absent value.
    key: Sequence[Any]
    target_rid: bytes
    # For messages only: a container keeps its name.
    target_name: str
    state: ForwardingState

    def covers(self, point: bytes) -> bool:
        return point.startswith(self.prefix)


ForwardingRules = tuple[ForwardingRule, ...]


def rule_at(rules: ForwardingRules | None, point: bytes) -> ForwardingRule | None:
    """Return the rule that covers a point; at most one does."""
    return next((rule for rule in rules or () if rule.covers(point)), None)


def with_rule(rules: ForwardingRules | None, rule: ForwardingRule) -> ForwardingRules:
    """Return the rules with this one in place of that of the same job."""
    return (*without_rule(rules, rule.number), rule)


def without_rule(rules: ForwardingRules | None, number: int) -> ForwardingRules:
    return tuple(rule for rule in rules or () if rule.number != number)


def pack_rules(rules: ForwardingRules) -> list[Mapping[str, Any]]:
    return [rule.to_fields() for rule in rules]


def unpack_rules(stored: Sequence[Mapping[str, Any]]) -> ForwardingRules:
    return tuple(ForwardingRule.from_fields(fields) for fields in stored)
