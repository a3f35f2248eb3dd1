"""The service's indexing policy, compiled to the rules that make index entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from asterism.models.documents.cosmos.properties import ALWAYS_INDEXED, NEVER_INDEXED
from asterism.models.documents.indexes.composite import composite_index
from asterism.models.documents.indexes.paths import Coverage, parse_policy_path
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.models.documents.indexes.spatial import spatial_index
from asterism.models.documents.indexes.terms import Rule
from asterism.values.json.value_order import JSON_ORDER

# In a policy that items may still be indexed by: its composite indexes are as the policy writes them, which only stores
# have that an earlier program made.
UNTURNED_COMPOSITES: Final = "unturnedComposites"


def compile_rules(policy: Mapping[str, Any], *, earlier: Sequence[Mapping[str, Any]] = ()) -> IndexingRules:
    """Return the rules of a policy that `indexing_policy` has completed. MalformedRequest when a path cannot be read.

    `earlier` are the policies by which some items may still be indexed.
    """
    before = tuple(compile_rules(other) for other in earlier)
    if str(policy.get("indexingMode", "consistent")).lower() == "none":
        return IndexingRules(None, JSON_ORDER, earlier=before)
    is_turned = not policy.get(UNTURNED_COMPOSITES, False)
    written = policy.get("compositeIndexes") or ()
    # An index and the same one turned round are one.
    composites = tuple(dict.fromkeys(composite_index(paths, JSON_ORDER, is_turned=is_turned) for paths in written))
    found = (spatial_index(entry["path"]) for entry in policy.get("spatialIndexes") or ())
    spatials = tuple(index for index in found if index is not None)
    is_automatic = policy.get("automatic", True) is not False
    return IndexingRules(_tree(policy), JSON_ORDER, composites, spatials, before, is_automatic=is_automatic)


def _tree(policy: Mapping[str, Any]) -> Rule:
    root = Rule()
    for verdict, name in ((True, "includedPaths"), (False, "excludedPaths")):
        for entry in policy.get(name) or ():
            segments, coverage = parse_policy_path(entry["path"])
            rule = root.at(segments)
            if coverage is Coverage.SCALAR:
                rule.scalar = verdict
            else:
                rule.subtree = verdict
    for name in NEVER_INDEXED:
        root.below[name] = Rule(scalar=False, subtree=False)
    for name in ALWAYS_INDEXED:
        root.at((name,)).scalar = True
    return root
