"""Computed properties: values that a container defines by a query, and that queries use like stored properties."""

from __future__ import annotations

from functools import lru_cache

from asterism.languages.cosmos_sql.compiling.compile import CompiledQuery, Item, compile_query
from asterism.languages.cosmos_sql.syntax.parser import parse_query
from asterism.models.documents.container import Container
from asterism.reading.document_view import DocumentView, stored_view
from asterism.values.undefined import UNDEFINED


def document_view(container: Container) -> DocumentView:
    """Return the queries' view of a container's items: with its computed properties."""
    properties, stored = container.planner.settings.computed_properties, stored_view(container.codec)
    if not properties:
        return stored
    queries = [(name, _compile(text)) for name, text in properties]

    def with_computed(body: bytes) -> Item:
        item = stored.decode(body)
        values = [(name, next(iter(query.rows(item)), UNDEFINED)) for name, query in queries]
        # A computed property hides a stored property of the same name.
        return {**item, **{name: value for name, value in values if value is not UNDEFINED}}

    return DocumentView(with_computed, with_computed, stored.parse_error, frozenset(name for name, _ in queries))


@lru_cache(maxsize=256)
def _compile(text: str) -> CompiledQuery:
    return compile_query(parse_query(text), {})
