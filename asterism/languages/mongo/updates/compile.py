"""Updates, compiled: operators, a replacement or a pipeline, as a function from a document to the changed one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Match
from asterism.languages.mongo.updates import arrays, bitwise, fields, push
from asterism.languages.mongo.updates.array_filters import check_identifier, compile_array_filters
from asterism.languages.mongo.updates.description import describe_change
from asterism.languages.mongo.updates.identity import identical
from asterism.languages.mongo.updates.nesting import check_nesting, nesting
from asterism.languages.mongo.updates.operator import ApplyState, UpdateOperator
from asterism.languages.mongo.updates.paths import Parts, identifier_of, is_array_update, parse_path
from asterism.languages.mongo.updates.pipeline import compile_stages
from asterism.languages.mongo.updates.rename import RenamePaths, without_path
from asterism.languages.mongo.updates.tree import Leaf, ObjectNode, TreeBuilder
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import compare
from asterism.values.bson.types import Document, Regex, Timestamp

# The largest document that is stored. A client cannot send a larger one, but an update can make one.
DOCUMENT_BYTES_MAX = 16 * 1024 * 1024

OPERATORS: dict[str, UpdateOperator] = {
    operator.name: operator for module in (fields, arrays, push, bitwise) for operator in module.OPERATORS
}

_NO_VARIABLES: Variables = {}

# Document, match of the filter, whether it is an insert, variables; returns the same object when nothing changes.
Transform = Callable[[Document, Match | None, bool, Variables], Document]


@dataclass(frozen=True, slots=True)
class Update:
    """A compiled update."""

    kind: Literal["operators", "replacement", "pipeline"]
    transform: Transform

    def apply(
        self,
        document: Document,
        *,
        match: Match | None = None,
        inserting: bool = False,
        variables: Variables = _NO_VARIABLES,
    ) -> Document | None:
        """Return the changed document, or None when no byte of it changes. The argument is left as it is. A
        replacement counts as a change even if it is the same."""
        after = self.transform(document, match, inserting, variables)
        if after is document:
            return None
        _check_id_unchanged(document, after)
        return after

    def new_document(self, equalities: dict[str, Any], *, variables: Variables = _NO_VARIABLES) -> Document:
        """Return the document that an upsert inserts; `equalities` are the values by path that the filter requires.
        There is an `_id` only if the filter or the update has one."""
        replaces = self.kind == "replacement"
        base: Document = {}
        for path, value in equalities.items():
            check_nesting(path.count(".") + 1 + nesting(value))
            if not replaces or path.split(".")[0] == "_id":
                _set_path(base, path.split("."), value)
        after = self.transform(base, None, True, variables)
        _check_id_unchanged(base, after)
        if "_id" in after:
            _check_new_id(after["_id"])
        return _id_first(after)

    def describe(self, before: Document, after: Document) -> Document:
        """Return the `updateDescription` of a change event."""
        return describe_change(before, after)


def compile_update(
    specification: Any,
    context: CompileContext,
    *,
    array_filters: Sequence[Document] = (),
    is_upsert: bool = False,
    is_multi: bool = False,
) -> Update:
    """Compile the `u` of an update command, or the `update` of findAndModify."""
    if type(specification) is list:
        if array_filters:
            raise MongoFailure(9, "arrayFilters may not be specified for pipeline-style updates")
        return Update("pipeline", _pipeline_transform(specification, context))
    if type(specification) is not dict:
        raise MongoFailure(9, "Update argument must be either an object or an array")
    if next(iter(specification), "").startswith("$"):
        return Update("operators", _operator_transform(specification, context, array_filters))
    if array_filters:
        raise MongoFailure(9, "arrayFilters may not be specified for replacement-style updates")
    if is_multi:
        raise MongoFailure(9, "multi update is not supported for replacement-style update")
    return Update("replacement", _replacement_transform(specification, context))


def check_result_size(byte_count: int) -> None:
    """Refuse a document that an update made too large; called with the length of its bytes."""
    if byte_count > DOCUMENT_BYTES_MAX:
        raise MongoFailure(17419, f"Resulting document after update is larger than {DOCUMENT_BYTES_MAX}")


def _operator_transform(
    specification: Document, context: CompileContext, array_filters: Sequence[Document]
) -> Transform:
    conditions = compile_array_filters(array_filters, context)
    whole, existing = TreeBuilder(conditions), TreeBuilder(conditions)
    used: set[str] = set()

    def add(parts: Parts, leaf: Leaf, *, only_on_insert: bool = False) -> None:
        for part in parts:
            if is_array_update(part):
                check_identifier(identifier_of(part), conditions, leaf.path)
                used.add(identifier_of(part))
        whole.add(parts, leaf)
        if not only_on_insert:
            existing.add(parts, leaf)

    for name, argument in specification.items():
        operator = OPERATORS.get(name)
        if operator is None and name != "$rename":
            raise MongoFailure(
                9,
                f"Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update as an array",
            )
        if type(argument) is not dict:
            raise MongoFailure(
                9,
                f"Modifiers operate on fields but we found type {type_name(argument)} instead. For example: "
                f"{{$mod: {{<field>: ...}}}} not {{{name}: ...}}",
            )
        for path, value in argument.items():
            if operator is None:
                renaming = RenamePaths(path, value)
                check_nesting(max(len(renaming.source), len(renaming.target)))
                add(renaming.source, Leaf(path, lambda old, _state: old, tolerates_dead_paths=True))
                add(renaming.target, Leaf(value, renaming))
                continue
            parts = parse_path(path)
            check_nesting(len(parts) + nesting(value))
            change = operator.compile(value, path, context)
            leaf = Leaf(path, change, tolerates_dead_paths=operator.tolerates_dead_paths)
            add(parts, leaf, only_on_insert=operator.only_on_insert)
    for identifier in conditions:
        if identifier not in used:
            raise MongoFailure(9, f"The array filter for identifier '{identifier}' was not used in the update")
    return _tree_transform(whole.build(), existing.build())


def _tree_transform(whole: ObjectNode, existing: ObjectNode) -> Transform:
    dollar_names = [name for name in existing.children if name.startswith("$")]

    def transform(document: Document, match: Match | None, inserting: bool, _variables: Variables) -> Document:
        state = ApplyState(document, match)
        after: Document = (whole if inserting else existing).apply(document, state)
        for source in state.removals:
            after = without_path(after, source)
        if dollar_names and not inserting:
            _check_dollar_names(dollar_names, document, after)
        return after

    return transform


def _check_dollar_names(names: list[str], before: Document, after: Document) -> None:
    for name in names:
        if name in after and after[name] is not before.get(name):
            raise MongoFailure(52, f"The dollar ($) prefixed field '{name}' in '{name}' is not valid for storage.")


def _replacement_transform(specification: Document, context: CompileContext) -> Transform:
    for name in specification:
        if name.startswith("$"):
            raise MongoFailure(
                52,
                f"The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's "
                "replacement document. Consider using an aggregation pipeline with $replaceWith.",
            )
    # An empty timestamp asks the server for its own, but only at the top and not as a key.
    replacement = {
        name: context.cluster_time if _is_empty_timestamp(value) and name != "_id" else value
        for name, value in specification.items()
    }
    return lambda document, _match, _inserting, _variables: _with_id_of(document, replacement)


def _is_empty_timestamp(value: Any) -> bool:
    return type(value) is Timestamp and value.time == 0 and value.inc == 0


def _pipeline_transform(stages: list[Any], context: CompileContext) -> Transform:
    run = compile_stages(stages, context)

    def transform(document: Document, _match: Match | None, _inserting: bool, variables: Variables) -> Document:
        after = _with_id_of(document, run(document, variables))
        check_nesting(nesting(after))
        return document if identical(document, after) else after

    return transform


def _with_id_of(before: Document, after: Document) -> Document:
    """Return the document with an `_id` in the first place: its own, or that of the document before."""
    if "_id" in after or "_id" not in before:
        return _id_first(after)
    return {"_id": before["_id"], **after}


def _id_first(document: Document) -> Document:
    if "_id" not in document or next(iter(document)) == "_id":
        return dict(document)
    return {"_id": document["_id"], **document}


def _check_id_unchanged(before: Document, after: Document) -> None:
    if "_id" not in before:
        return
    old = before["_id"]
    if "_id" in after and (after["_id"] is old or compare(old, after["_id"]) == 0):
        return
    raise MongoFailure(66, "Performing an update on the path '_id' would modify the immutable field '_id'")


def _check_new_id(value: Any) -> None:
    if type(value) is list or type(value) is Regex:
        raise MongoFailure(53, f"The '_id' value cannot be of type {type_name(value)}")
    if type(value) is dict and any(name.startswith("$") for name in value):
        raise MongoFailure(52, "The dollar ($) prefixed field in '_id' is not valid for storage.")


def _set_path(document: Document, parts: list[str], value: Any) -> None:
    """Set a value of a new document; the paths of a filter never meet an array there."""
    for part in parts[:-1]:
        document = document.setdefault(part, {})
    document[parts[-1]] = value
