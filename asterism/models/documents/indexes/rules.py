"""Index entries as a function of an item and its container's indexing policy.

A term is an index entry's key without the item's number at its end: the family, a path token that says where in an
item a scalar stands, and the scalar as sortable bytes. The element of an array stands at the path of the array plus
`[]`, whatever its position, so arrays can give the same term twice; it is kept once. Strings are truncated to
`VALUE_BYTES_MAX`: readers that find an item by a truncated term check the item itself. Arrays and objects have a term
too, which says of them only that they exist.

Of the policy's paths the most precise one that covers a scalar decides: a longer path over a shorter one, and at the
same place `/?` (this scalar) over `/*` (this and all below it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.models.documents.indexes.columns import TermColumns
from asterism.models.documents.indexes.composite import CompositeIndex
from asterism.models.documents.indexes.paths import ARRAY_ELEMENT, ROOT_TOKEN, Segment
from asterism.models.documents.indexes.spatial import SpatialIndex
from asterism.models.documents.indexes.terms import KNOWN_CHARACTERS_MAX, PathNode, Rule, Term
from asterism.values.value_order import ValueOrder

# Paths whose verdict and token are remembered per container, about 400 bytes each. Items with made-up property names
# (a guid as a name, say) must not fill the memory: beyond this, paths are computed each time.
REMEMBERED_PATHS_MAX = 20_000


class IndexingRules:
    """A container's indexing policy, compiled once and used by every write.

    While items are reindexed from earlier policies to this one, an item has the terms of one of them, and it is not
    known of which: writes add the terms of this policy and remove all others that the item may have, and queries rely
    only on paths that every policy covers.
    """

    __slots__ = (
        "_composites",
        "_enabled",
        "_remembered_paths_left",
        "_root",
        "_spatials",
        "earlier",
        "is_automatic",
        "order",
    )

    def __init__(
        self,
        rules: Rule | None,
        order: ValueOrder,
        composites: tuple[CompositeIndex, ...] = (),
        spatials: tuple[SpatialIndex, ...] = (),
        earlier: tuple[IndexingRules, ...] = (),
        *,
        is_automatic: bool = True,
    ) -> None:
        """`order` is the order of the values in terms; a container keeps one as long as it exists."""
        # True if items are indexed even if their writer does not ask for it.
        self.is_automatic = is_automatic
        self.order = order
        self._enabled = rules is not None
        self._composites = composites
        self._spatials = spatials
        self.earlier = earlier
        self._root = PathNode(ROOT_TOKEN, order, rule=rules, inherited=False)
        self._remembered_paths_left = REMEMBERED_PATHS_MAX

    @property
    def composites(self) -> tuple[CompositeIndex, ...]:
        """The composite indexes in which every item has its term."""
        return tuple(index for index in self._composites if all(index in rules.composites for rules in self.earlier))

    @property
    def enabled(self) -> bool:
        """False for the indexing mode "none": no item has terms, and queries scan."""
        return self._enabled

    def terms(self, item: Mapping[str, Any]) -> list[Term]:
        """Return the index terms of `item`, each once."""
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
        """Return the index terms of each item; in items of one shape, those of one path have the same index in each."""
        columns = TermColumns(len(items), walk=self._add_value, below=self._remember)
        is_plain = self._enabled and not self._composites and not self._spatials
        if is_plain and items and columns.add_objects(self._root, items):
            return columns.of_each()
        return [self.terms(item) for item in items]

    def possible_terms(self, item: Mapping[str, Any]) -> list[Term]:
        """Return every term that a stored item may have."""
        terms = self.terms(item)
        if self.earlier:
            terms = list(dict.fromkeys([*terms, *(term for rules in self.earlier for term in rules.terms(item))]))
        return terms

    def changes_due(self, item: Mapping[str, Any]) -> tuple[set[Term], set[Term]]:
        """Return the terms that a stored item may lack, and those that it may have and should not."""
        own = set(self.terms(item))
        first, *others = (set(rules.terms(item)) for rules in self.earlier)
        return own - first.intersection(*others), first.union(*others) - own

    def certain_terms(self, item: Mapping[str, Any]) -> list[Term]:
        """Return the terms that a stored item has for sure."""
        terms = self.terms(item)
        for rules in self.earlier:
            had = set(rules.terms(item))
            terms = [term for term in terms if term in had]
        return terms

    def count(self, item: Mapping[str, Any]) -> int:
        """Return how many terms `item` has; the charge of a write depends on it."""
        return len(self.terms(item))

    def covers_scalar(self, segments: Sequence[Segment]) -> bool:
        """Return True if a scalar at this path has a term, so that a query may rely on the index to find it."""
        node = self._root
        for segment in segments:
            node = node.child(segment)
        return self._enabled and node.indexed and all(rules.covers_scalar(segments) for rules in self.earlier)

    def covers_geometry(self, path: Sequence[Segment]) -> bool:
        """Return True if a geometry at this path has terms of a spatial index."""
        is_covered = self._enabled and any(spatial.covers(path) for spatial in self._spatials)
        return is_covered and all(rules.covers_geometry(path) for rules in self.earlier)

    # The methods below are one walk. They return True if they met an array, because only then can terms repeat,
    # and they test for the kinds in place: this runs for every property of every write.

    def _add_object(self, node: PathNode, members: Mapping[str, Any], terms: list[Term]) -> bool:
        below = node.below
        met_array = False
        for name, value in members.items():
            child = below.get(name) or self._remember(node, name)
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

    def _add_value(self, node: PathNode, value: Any, terms: list[Term]) -> bool:
        if type(value) is dict or type(value) is list:
            return self._add_nested(node, value, terms)
        if node.indexed:
            terms.append(node.scalar_term(value))
        return False

    def _add_nested(self, node: PathNode, value: Any, terms: list[Term]) -> bool:
        if type(value) is dict:
            if node.indexed:
                terms.append(node.object_term)
            return node.walked and self._add_object(node, value, terms)
        if node.indexed:
            terms.append(node.array_term())
        if node.walked:
            self._add_array(node, value, terms)
        return node.walked

    def _add_array(self, node: PathNode, elements: Sequence[Any], terms: list[Term]) -> None:
        child = node.below.get(ARRAY_ELEMENT) or self._remember(node, ARRAY_ELEMENT)
        for value in elements:
            kind = type(value)
            if kind is dict or kind is list:
                self._add_nested(child, value, terms)
            elif child.indexed:
                terms.append(child.scalar_term(value))

    def _remember(self, node: PathNode, segment: Segment) -> PathNode:
        child = node.child(segment)
        if self._remembered_paths_left > 0:
            self._remembered_paths_left -= 1
            node.below[segment] = child
        return child
