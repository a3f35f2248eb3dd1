"""Requests for logical partitions that another container serves, by the rules of the keyspace's record.

A write is checked where its unit begins, under `keyspace.in_flight`: its batch is applied only while the same terms are
in force (D4). A read is checked after it, because the rule may have come meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from asterism.errors import AsterismError, Category, Forbidden, MalformedRequest
from asterism.keyspaces.catalog.forwarding import ForwardingRule, ForwardingState, rule_at
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.families import after_prefix
from asterism.models.documents.results import Scope
from asterism.values.records import pack_record

_SERVED_ELSEWHERE = (ForwardingState.HANDED_OVER, ForwardingState.FORWARDING)


@dataclass(eq=False)
class PartitionForwarded(AsterismError):
    """The items are in the container of the rule. A door that can carry the request out there does so; others tell the
    client."""

    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "The items of the partition key are in another container."
    reason: str
    rule: ForwardingRule


@dataclass(eq=False)
class PartitionFenced(AsterismError):
    """Writes of the partition key wait for a moment, until they are forwarded."""

    category: ClassVar[Category] = Category.UNAVAILABLE
    text: ClassVar[str] = "The partition key is being handed over to another container; send the request again."
    rule: ForwardingRule


def forwarded(rule: ForwardingRule) -> PartitionForwarded:
    return PartitionForwarded(reason=_words(rule), rule=rule)


def check_read(record: KeyspaceRecord, point: bytes) -> None:
    """Refuse a read of a logical partition that another container serves."""
    rule = rule_at(record.forwarding, point)
    if rule is not None and rule.state in _SERVED_ELSEWHERE:
        raise forwarded(rule)


def check_write(record: KeyspaceRecord, point: bytes) -> None:
    """Refuse a write of a logical partition that another container serves, or is about to serve."""
    rule = rule_at(record.forwarding, point)
    if rule is None:
        return
    match rule.state:
        case ForwardingState.FENCED | ForwardingState.HANDED_OVER:
            raise PartitionFenced(rule=rule)
        case ForwardingState.FORWARDING:
            raise forwarded(rule)
        case ForwardingState.ENDED:
            raise Forbidden(reason=f"{_words(rule)} Write there.")


def hidden_scopes(record: KeyspaceRecord) -> list[Scope]:
    """Return the parts of the line whose items, if there still are any, are old copies."""
    rules = record.forwarding or ()
    return [scope_of_rule(rule) for rule in rules if rule.state is not ForwardingState.FENCED]


def is_hidden(hidden: Sequence[Scope], reference: bytes) -> bool:
    return any(scope.start <= reference < scope.end for scope in hidden)


def own_scopes(record: KeyspaceRecord, scopes: Sequence[Scope]) -> Sequence[Scope]:
    """Return the parts of `scopes` that are read here. PartitionForwarded if all of it is in one other container, and
    MalformedRequest if the logical partitions that it names are in several."""
    if record.forwarding is None:
        return scopes
    rules = [_rule_around(record, scope) for scope in scopes]
    elsewhere = [rule for rule in rules if rule is not None and rule.state in _SERVED_ELSEWHERE]
    if elsewhere:
        if any(rule is not elsewhere[0] for rule in rules):
            raise MalformedRequest(
                reason=f"The request names partition keys of several containers. {_words(elsewhere[0])} Send a "
                "request of its own for this key."
            )
        raise forwarded(elsewhere[0])
    left = list(scopes)
    for hidden in hidden_scopes(record):
        left = [part for scope in left for part in _without(scope, hidden)]
    return left


def _rule_around(record: KeyspaceRecord, scope: Scope) -> ForwardingRule | None:
    """Return the rule that covers the whole of a scope."""
    rule = rule_at(record.forwarding, scope.start)
    return rule if rule is not None and scope.end <= scope_of_rule(rule).end else None


def scope_of_rule(rule: ForwardingRule) -> Scope:
    """Return the part of the line that a rule covers."""
    return Scope(rule.prefix, after_prefix(rule.prefix) or b"\xff")


def _without(scope: Scope, hidden: Scope) -> list[Scope]:
    parts = (Scope(scope.start, min(scope.end, hidden.start)), Scope(max(scope.start, hidden.end), scope.end))
    return [part for part in parts if part.start < part.end]


def _words(rule: ForwardingRule) -> str:
    key = pack_record(list(rule.key)).decode()
    return f"The items of the partition key {key} are in the container '{rule.target_name}' now."
