"""The rules of a synthetic partition key in a container's JSON: `synthetic` in the partition key, by path.

It stands there because that is where unmodified clients can put it: they pass a partition key on as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asterism.models.documents.cosmos.policy_json import refuse
from asterism.partitioning.computed_key import ComputedKey
from asterism.partitioning.key_parts import KeyRuleError
from asterism.partitioning.partition_key import PartitionKeyDefinition

SYNTHETIC: Final = "synthetic"


def computed_key_of(partition_key: Mapping[str, Any]) -> ComputedKey | None:
    """Read the rules of a partition key, of a request or as they are stored; refuse rules that cannot be."""
    given = partition_key.get(SYNTHETIC)
    if given is None:
        return None
    try:
        return ComputedKey.parse(PartitionKeyDefinition.from_record(partition_key), given)
    except KeyRuleError as error:
        refuse(str(error))


def shown_partition_key(definition: PartitionKeyDefinition, partition_key: Mapping[str, Any]) -> dict[str, object]:
    """Return a partition key as clients see it: its definition, and its rules with all of their defaults."""
    computed = computed_key_of(partition_key)
    shown = definition.to_json()
    return shown if computed is None else {**shown, SYNTHETIC: computed.to_json()}


def replaced_partition_key(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the partition key of a container that a replace describes with `given`. Its rules stay where a client left
    them out; with higher counts of suffixes they are followed up by what the items have that were written before."""
    after = {**given, "version": before.get("version") if given.get("version") is None else given["version"]}
    known = computed_key_of(before)
    if known is None:
        return after
    if after.get(SYNTHETIC) is None:
        return {**after, SYNTHETIC: before[SYNTHETIC]}
    asked = computed_key_of(after)
    assert asked is not None
    try:
        return {**after, SYNTHETIC: asked.raised_from(known).to_json()}
    except KeyRuleError as error:
        refuse(str(error))


def without_counts(partition_key: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what of a partition key no replace can change: all but the counts of its suffixes."""
    rules = partition_key.get(SYNTHETIC)
    if rules is None:
        return partition_key
    kept = {
        path: {**rule, "suffix": {**rule["suffix"], "count": 0, "earlierCounts": ()}} if "suffix" in rule else rule
        for path, rule in rules.items()
    }
    return {**partition_key, SYNTHETIC: kept}
