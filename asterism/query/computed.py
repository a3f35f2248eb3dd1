"""Computed properties: values a container defines by a query, which filters and projections can name like any other."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import cast

from asterism.documents.container import Container
from asterism.query.compile import CompiledQuery, Item, compile_query
from asterism.query.parser import parse_query
from asterism.values.json_text import loads
from asterism.values.undefined import UNDEFINED


def preparation(container: Container) -> Callable[[bytes], Item] | None:
    """How an item's JSON becomes what queries see; None when that is all they see."""
    told = container.record.settings.get("computedProperties")
    if not told:
        return None
    computed = [(str(one["name"]), _compiled(str(one["query"]))) for one in told]

    def prepare(body: bytes) -> Item:
        item = cast(Item, loads(body))
        values = [(name, next(iter(query.rows(item)), UNDEFINED)) for name, query in computed]
        # What is stored under such a name is hidden by it.
        return {**item, **{name: value for name, value in values if value is not UNDEFINED}}

    return prepare


@lru_cache(maxsize=256)
def _compiled(text: str) -> CompiledQuery:
    return compile_query(parse_query(text), {})
