"""Index entries as a function of an item and its container's indexing policy.

A term is an index entry's key without the item's number at its end: the family, a path token that says where in an
item a scalar stands, and the scalar as sortable bytes. The element of an array stands at the path of the array plus
`[]`, whatever its position, so arrays can give the same term twice; it is kept once. Strings are cut to
`VALUE_BYTES_MAX`: who finds an item by a cut term looks at the item again. Arrays and objects have a term too, which
says of them only that they are there.

Of the policy's paths the most precise one that covers a scalar decides: a longer path over a shorter one, and at the
same place `/?` (this scalar) over `/*` (this and all below it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.documents.composite_index import CompositeIndex, composite_index
from asterism.documents.index_columns import TermColumns
from asterism.documents.index_paths import ARRAY_ELEMENT, ROOT_TOKEN, Coverage, Segment, parse_policy_path
from asterism.documents.index_place import ARRAY_VALUE, KNOWN_CHARACTERS_MAX, Place, Rule, Term
from asterism.documents.spatial_index import SpatialIndex, spatial_index

# Paths whose verdict and token are remembered per container, about 400 bytes each. Items with made-up property names
# (a guid as a name, say) must not fill the memory: beyond this, paths are worked out anew each time.
REMEMBERED_PATHS_MAX = 20_000
# In a policy that items may still be indexed by: its composite indexes are as the policy writes them, which only stores
# have that an earlier program made.
UNTURNED_COMPOSITES = "unturnedComposites"
# Set by the server and different in every item, or not a property of the item: nobody looks for an item by them.
_NEVER_INDEXED_PROPERTIES = ("_rid", "_self", "_etag", "_attachments")


class IndexingRules:
    """A container's indexing policy, compiled; made once and asked for every write.

    While items are brought from earlier policies to this one, an item has the terms of one of them, nobody knows which:
    what is written has the terms of this policy, what is removed is all that may be there, and queries rely only on
    what every policy covers.
    """

    __slots__ = ("_composites", "_enabled", "_remembered_paths_left", "_root", "_spatials", "earlier", "is_automatic")

    def __init__(
        self,
        rules: Rule | None,
        composites: tuple[CompositeIndex, ...] = (),
        spatials: tuple[SpatialIndex, ...] = (),
        earlier: tuple[IndexingRules, ...] = (),
        *,
        is_automatic: bool = True,
    ) -> None:
        # Whether items are indexed of which nobody says that they should be.
        self.is_automatic = is_automatic
        self._enabled = rules is not None
        self._composites = composites
        self._spatials = spatials
        self.earlier = earlier
        self._root = Place(ROOT_TOKEN, rule=rules, inherited=False)
        self._remembered_paths_left = REMEMBERED_PATHS_MAX

    @classmethod
    def compile(cls, indexing_policy: Mapping[str, Any], *, earlier: Sequence[Mapping[str, Any]] = ()) -> IndexingRules:
        """The rules of a policy as `settings` completes it. MalformedRequest when a path cannot be read.

        `earlier`: the policies by which some items may still be indexed.
        """
        before = tuple(cls.compile(policy) for policy in earlier)
        if str(indexing_policy.get("indexingMode", "consistent")).lower() == "none":
            return cls(None, earlier=before)
        root = Rule()
        for verdict, name in ((True, "includedPaths"), (False, "excludedPaths")):
            for entry in indexing_policy.get(name) or ():
                segments, coverage = parse_policy_path(entry["path"])
                rule = root.at(segments)
                if coverage is Coverage.SCALAR:
                    rule.scalar = verdict
                else:
                    rule.subtree = verdict
        for name in _NEVER_INDEXED_PROPERTIES:
            root.below[name] = Rule(scalar=False, subtree=False)
        # The service finds items by id, and changes by time, under every policy but "none".
        for name in ("id", "_ts"):
            root.at((name,)).scalar = True
        is_turned = not indexing_policy.get(UNTURNED_COMPOSITES, False)
        written = indexing_policy.get("compositeIndexes") or ()
        # An index and the same one turned round are one.
        composites = tuple(dict.fromkeys(composite_index(paths, is_turned=is_turned) for paths in written))
        found = (spatial_index(entry["path"]) for entry in indexing_policy.get("spatialIndexes") or ())
        spatials = tuple(index for index in found if index is not None)
        return cls(root, composites, spatials, before, is_automatic=indexing_policy.get("automatic", True) is not False)

    @property
    def composites(self) -> tuple[CompositeIndex, ...]:
        """The composite indexes in which every item has its term."""
        return tuple(one for one in self._composites if all(one in rules.composites for rules in self.earlier))

    @property
    def enabled(self) -> bool:
        """False for the indexing mode "none": no item has terms, and queries scan."""
        return self._enabled

    def terms(self, item: Mapping[str, Any]) -> list[Term]:
        """The index terms of `item`, each once."""
        terms: list[Term] = []
        if self._enabled and self._add_object(self._root, item, terms):
            terms = list(dict.fromkeys(terms))
        if self._enabled and self._composites:
            terms += [composite.term(item) for composite in self._composites]
        if self._enabled and self._spatials:
            # Two indexes may cover one path.
            terms += dict.fromkeys(term for spatial in self._spatials for term in spatial.terms(item))
        return terms

    def terms_of_many(self, items: Sequence[Mapping[str, Any]]) -> list[Sequence[Term]]:
        """The index terms of each item; in items of one shape, those of one path have the same place in each."""
        columns = TermColumns(len(items), walk=self._add_value, below=self._remember)
        is_plain = self._enabled and not self._composites and not self._spatials
        if is_plain and items and columns.add_objects(self._root, items):
            return columns.of_each()
        return [self.terms(item) for item in items]

    def possible_terms(self, item: Mapping[str, Any]) -> list[Term]:
        """Every term that a stored item may have."""
        terms = self.terms(item)
        if self.earlier:
            terms = list(dict.fromkeys([*terms, *(term for rules in self.earlier for term in rules.terms(item))]))
        return terms

    def changes_due(self, item: Mapping[str, Any]) -> tuple[set[Term], set[Term]]:
        """The terms that a stored item may lack, and those that it may have and should not."""
        own = set(self.terms(item))
        first, *others = (set(rules.terms(item)) for rules in self.earlier)
        return own - first.intersection(*others), first.union(*others) - own

    def certain_terms(self, item: Mapping[str, Any]) -> list[Term]:
        """The terms that a stored item has for sure."""
        terms = self.terms(item)
        for rules in self.earlier:
            had = set(rules.terms(item))
            terms = [term for term in terms if term in had]
        return terms

    def count(self, item: Mapping[str, Any]) -> int:
        """How many terms `item` has; what a write costs depends on it."""
        return len(self.terms(item))

    def covers_scalar(self, segments: Sequence[Segment]) -> bool:
        """Whether a scalar at this path has a term, so that a query may rely on the index to find it."""
        place = self._root
        for segment in segments:
            place = place.child(segment)
        return self._enabled and place.indexed and all(rules.covers_scalar(segments) for rules in self.earlier)

    def covers_geometry(self, path: Sequence[Segment]) -> bool:
        """Whether a geometry at this path has terms of a spatial index."""
        is_covered = self._enabled and any(spatial.covers(path) for spatial in self._spatials)
        return is_covered and all(rules.covers_geometry(path) for rules in self.earlier)

    # The methods below are one walk. They return whether they met an array, because only then can terms repeat,
    # and they test for the kinds in place: this runs for every property of every write.

    def _add_object(self, place: Place, members: Mapping[str, Any], terms: list[Term]) -> bool:
        below = place.below
        met_array = False
        for name, value in members.items():
            child = below.get(name) or self._remember(place, name)
            kind = type(value)
            if kind is str:
                if child.indexed:
                    if len(value) <= KNOWN_CHARACTERS_MAX:
                        terms.append(child.known.get(value) or child.short_string_term(value))
                    else:
                        terms.append(child.term(value))
            elif kind is int or kind is float:
                if child.indexed:
                    terms.append(child.number_term(value))
            elif kind is dict or kind is list:
                if self._add_nested(child, value, terms):
                    met_array = True
            elif child.indexed:
                terms.append(child.term(value))
        return met_array

    def _add_value(self, place: Place, value: Any, terms: list[Term]) -> bool:
        if type(value) is dict or type(value) is list:
            return self._add_nested(place, value, terms)
        if place.indexed:
            terms.append(place.scalar_term(value))
        return False

    def _add_nested(self, place: Place, value: Any, terms: list[Term]) -> bool:
        if type(value) is dict:
            if place.indexed:
                terms.append(place.object_term)
            return place.walked and self._add_object(place, value, terms)
        if place.indexed:
            terms.append(place.start + ARRAY_VALUE)
        if place.walked:
            self._add_array(place, value, terms)
        return place.walked

    def _add_array(self, place: Place, elements: Sequence[Any], terms: list[Term]) -> None:
        child = place.below.get(ARRAY_ELEMENT) or self._remember(place, ARRAY_ELEMENT)
        for value in elements:
            kind = type(value)
            if kind is dict or kind is list:
                self._add_nested(child, value, terms)
            elif child.indexed:
                terms.append(child.scalar_term(value))

    def _remember(self, place: Place, segment: Segment) -> Place:
        child = place.child(segment)
        if self._remembered_paths_left > 0:
            self._remembered_paths_left -= 1
            place.below[segment] = child
        return child
