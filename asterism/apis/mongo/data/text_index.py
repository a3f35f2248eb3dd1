"""The text index of a collection, which every `$text` goes by."""

from __future__ import annotations

from asterism.apis.mongo.data.ordering import SortOrder
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Match, Node
from asterism.languages.mongo.indexes.text import is_text_index
from asterism.languages.mongo.text.fields import TextFields
from asterism.models.collections.records import CollectionRecord, IndexRecord


def bind_text(match: Match, record: CollectionRecord, implied: frozenset[str], order: SortOrder) -> None:
    """Give the search of a filter its index; refuse it where the index cannot answer."""
    if order.natural:
        raise MongoFailure(2, "text expression not allowed with $natural sort order")
    index = next((index for index in record.indexes if is_text_index(index) and index.is_ready), None)
    if index is None or index.is_hidden:
        raise MongoFailure(27, "text index required for $text query")
    if "partialFilterExpression" in index.options and index.name not in implied:
        raise _cannot_be_used(record)
    _check_prefix(index, match, record)
    for part in match.node.children if match.node.kind == "and" else (match.node,):
        if part.kind == "or":
            _check_alternatives(part, record)
    match.text.bind(TextFields(index.options))


def _check_prefix(index: IndexRecord, match: Match, record: CollectionRecord) -> None:
    """Check that the fields before the text have one value each."""
    known = {condition.path for condition in match.conditions if condition.operator == "eq"}
    for path in index.key:
        if path == "_fts":
            return
        if path not in known:
            raise _cannot_be_used(record)


def _check_alternatives(alternatives: Node, record: CollectionRecord) -> None:
    """Check that everything beside a search has an index: otherwise all documents would have to be looked at."""
    if all(child.kind != "text" for child in alternatives.children):
        return
    indexed = {next(iter(index.key)) for index in record.indexes}
    for child in alternatives.children:
        paths = {part.path for part in (child.children if child.kind == "and" else (child,))}
        if child.kind != "text" and paths.isdisjoint(indexed):
            raise MongoFailure(
                291,
                f"error processing query: ns={record.namespace} Failed to produce a solution for TEXT under OR - other "
                "non-TEXT clauses under OR have to be indexed as well.",
            )


def _cannot_be_used(record: CollectionRecord) -> MongoFailure:
    return MongoFailure(
        291,
        f"error processing query: ns={record.namespace} failed to use text index to satisfy $text query (if text index "
        "is compound, are equality predicates given for all prefix fields?)",
    )
