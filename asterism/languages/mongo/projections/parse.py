"""The specification of a projection, read: which fields are kept, removed and computed, and what `find` adds to that.

`$project` and `find` share the language; $slice with numbers, $elemMatch and the positional `a.$` belong to `find`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.elements import is_truthy
from asterism.languages.mongo.projections.find_operators import Slice, compile_elem_match, find_slice
from asterism.languages.mongo.projections.names import Parts, PathSet, check_depth, split_checked
from asterism.languages.mongo.projections.tree import Tree
from asterism.values.bson.types import Decimal128, Int64

_FLAG_TYPES = (bool, int, Int64, float, Decimal128)


@dataclass(slots=True)
class Parser:
    """The state of reading a projection. The first field that says so decides whether fields are kept or removed."""

    context: CompileContext
    is_find: bool
    # True for a projection that keeps what it lists, False for one that removes it, None as long as it is open.
    is_inclusion: bool | None = None
    paths: PathSet = field(default_factory=lambda: PathSet(child_after_parent=31249, parent_after_child=31250))
    included: list[Parts] = field(default_factory=list)
    excluded: list[Parts] = field(default_factory=list)
    computed: list[tuple[Parts, Evaluate]] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    elem_matches: list[tuple[Parts, Evaluate]] = field(default_factory=list)
    positional: Parts | None = None
    # True if `_id` is kept or removed as a whole, None if it is not mentioned.
    keeps_id: bool | None = None
    has_meta: bool = False

    def read(self, specification: dict[str, Any]) -> None:
        for name, value in specification.items():
            self._read_field((), name, value)
        if self.is_inclusion is None:
            self.is_inclusion = self._default_mode()

    def _default_mode(self) -> bool:
        """Decide for a projection of operators alone: $elemMatch keeps only what it finds, $slice keeps all fields."""
        if self.keeps_id is True or self.elem_matches:
            return True
        return self.has_meta and not self.is_find and self.keeps_id is None

    def _read_field(self, above: Parts, name: str, value: Any) -> None:
        if ".$." in name or name.startswith("$."):
            raise MongoFailure(31394, "As of 4.4, it's illegal to specify positional operator in the middle of a path.")
        if name.endswith(".$"):
            self._read_positional((*above, *split_checked(name[:-2])), value)
            return
        parts = (*above, *split_checked(name))
        check_depth(parts)
        if type(value) is dict:
            self._read_document(parts, value)
        elif isinstance(value, _FLAG_TYPES):
            self._read_flag(parts, is_truthy(value))
        else:
            self._read_value(parts, value)

    def _read_flag(self, parts: Parts, keeps: bool) -> None:
        self.paths.add(parts)
        if parts == ("_id",):
            self.keeps_id = keeps
            return
        path = ".".join(parts)
        if self.is_inclusion is (not keeps):
            if keeps:
                raise MongoFailure(31253, f"Cannot do inclusion on field {path} in exclusion projection")
            raise MongoFailure(31254, f"Cannot do exclusion on field {path} in inclusion projection")
        self.is_inclusion = keeps
        (self.included if keeps else self.excluded).append(parts)

    def _read_value(self, parts: Parts, value: Any) -> None:
        """Read a value that is computed: a path, a text, an array, null."""
        if self.is_inclusion is False:
            raise MongoFailure(31310, "Cannot use an expression in an exclusion projection")
        self.is_inclusion = True
        self.paths.add(parts)
        self.computed.append((parts, self.context.compile(value)))

    def _read_document(self, parts: Parts, value: dict[str, Any]) -> None:
        if not value:
            raise MongoFailure(51270, "An empty sub-projection is not a valid value. Found empty object at path")
        name = next(iter(value))
        if len(value) > 1 or not name.startswith("$"):
            for inner, part in value.items():
                self._read_field(parts, inner, part)
        elif self.is_find and name == "$elemMatch":
            self._read_elem_match(parts, value[name])
        elif self.is_find and name == "$slice" and (found := find_slice(parts, value[name])) is not None:
            self._read_slice(found, value)
        else:
            self._read_expression(parts, name, value)

    def _read_expression(self, parts: Parts, name: str, value: dict[str, Any]) -> None:
        from asterism.languages.mongo.expressions.compile import OPERATORS

        if name not in OPERATORS and name != "$elemMatch":
            raise MongoFailure(31325, f"Unknown expression {name}")
        if name == "$meta":
            self.has_meta = True
        elif self.is_inclusion is False:
            raise MongoFailure(31252, "Cannot use expression other than $meta in exclusion projection")
        else:
            self.is_inclusion = True
        self.paths.add(parts)
        self.computed.append((parts, self.context.compile(value)))

    def _read_slice(self, found: Slice, value: dict[str, Any]) -> None:
        if found.parts == self.positional:
            # The server then takes it for the operator of expressions, which has two arguments at least.
            self.context.compile(value)
        self.paths.add(found.parts)
        self.slices.append(found)

    def _read_elem_match(self, parts: Parts, condition: Any) -> None:
        if self.positional is not None:
            raise MongoFailure(31255, "Cannot specify positional operator and $elemMatch.")
        if type(condition) is not dict:
            raise MongoFailure(31274, "elemMatch: Invalid argument, object required")
        if len(parts) > 1:
            raise MongoFailure(31275, "Cannot use $elemMatch projection on a nested field")
        self.paths.add(parts)
        self.elem_matches.append((parts, compile_elem_match(parts[0], condition, self.context)))

    def _read_positional(self, parts: Parts, value: Any) -> None:
        if not self.is_find:
            raise MongoFailure(31324, "Cannot use positional projection in aggregation projection")
        if type(value) is dict:
            raise MongoFailure(31271, "positional projection cannot be used with an expression or sub object")
        if not isinstance(value, _FLAG_TYPES):
            raise MongoFailure(31308, "positional projection cannot be used with a literal")
        if self.is_inclusion is False or not is_truthy(value):
            raise MongoFailure(31395, "positional projection cannot be used with exclusion")
        if self.positional is not None:
            raise MongoFailure(31276, "Cannot specify more than one positional projection per query.")
        if self.elem_matches:
            raise MongoFailure(31256, "Cannot specify positional operator and $elemMatch.")
        self.paths.add(parts)
        self.is_inclusion = True
        self.positional = parts
        self.included.append(parts)

    def tree(self) -> Tree:
        """Return the tree of the fields."""
        tree = Tree()
        if self.is_inclusion:
            computes_id = any(parts[0] == "_id" for parts, _ in self.computed)
            lists_below_id = any(parts[0] == "_id" for parts in self.included)
            if self.keeps_id is not False and not computes_id and not lists_below_id:
                tree.listed.add("_id")
            for parts in (*self.included, *(found.parts for found in self.slices)):
                tree.list_path(parts)
        else:
            if self.keeps_id is False:
                tree.listed.add("_id")
            for parts in self.excluded:
                tree.list_path(parts)
        for parts, evaluate in (*self.computed, *self.elem_matches):
            tree.compute(parts, evaluate)
        return tree
