"""Computed properties: values a container defines by a query, which filters and projections can name like any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

from asterism.documents.container import Container
from asterism.query.compile import CompiledQuery, Item, compile_query
from asterism.query.parser import parse_query
from asterism.values.json_text import loads_stored
from asterism.values.undefined import UNDEFINED


@dataclass(frozen=True, slots=True)
class Computed:
    """How an item's JSON becomes what queries see, and the names that no index knows."""

    item_of: Callable[[bytes], Item]
    names: frozenset[str] = frozenset()


# Named itself and not called by another function: this runs for every item that a query reads.
NOTHING_COMPUTED: Final = Computed(cast("Callable[[bytes], Item]", loads_stored))


def computed_properties(container: Container) -> Computed:
    told = container.record.settings.get("computedProperties")
    if not told:
        return NOTHING_COMPUTED
    queries = [(str(one["name"]), _compiled(str(one["query"]))) for one in told]

    def with_computed(body: bytes) -> Item:
        item = cast(Item, loads_stored(body))
        values = [(name, next(iter(query.rows(item)), UNDEFINED)) for name, query in queries]
        # What is stored under such a name is hidden by it.
        return {**item, **{name: value for name, value in values if value is not UNDEFINED}}

    return Computed(with_computed, frozenset(name for name, _ in queries))


@lru_cache(maxsize=256)
def _compiled(text: str) -> CompiledQuery:
    return compile_query(parse_query(text), {})
