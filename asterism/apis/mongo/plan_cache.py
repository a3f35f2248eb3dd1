"""Commands about the planner: index filters, and its cache, which is empty here: every query is planned anew."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, Target
from asterism.apis.mongo.data.scopes import read_collation
from asterism.apis.mongo.index_filters import IndexFilter
from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.query_shapes import plan_shape
from asterism.models.collections.records import CollectionRecord
from asterism.values.bson.types import Document


async def clear_plans(call: Call) -> Document:
    _record(call)
    return {}


async def set_filter(call: Call) -> Document:
    record = _record(call)
    if record is None:
        raise MongoFailure(2, f"the collection {call.namespace} does not exist")
    body = call.body
    query, indexes = body.get("query"), body.get("indexes")
    if type(query) is not dict:
        raise MongoFailure(2, "required field query must be an object")
    if type(indexes) is not list or not indexes:
        raise MongoFailure(2, "required field indexes must be an array with at least one index")
    for index in indexes:
        if type(index) not in (str, dict) or not index:
            raise MongoFailure(2, "each item in indexes must be a key pattern or the name of an index")
    for name in ("sort", "projection", "collation"):
        if name in body and type(body[name]) is not dict:
            raise MongoFailure(2, f"optional field {name} must be an object")
    if body.get("collation") == {}:
        raise MongoFailure(2, "optional field collation cannot be empty")
    collation = _collation(body)
    compile_filter(query, new_context(call.now, call.cluster_time))
    found = IndexFilter(query, body.get("sort", {}), body.get("projection", {}), collation, indexes)
    shape = plan_shape(query, found.sort, found.projection, collation)
    call.context.index_filters.set(record, shape, found)
    return {}


async def clear_filters(call: Call) -> Document:
    record = _record(call)
    if record is None:
        return {}
    body = call.body
    query = body.get("query")
    shape = None
    if type(query) is dict:
        sort, projection = _object(body.get("sort")), _object(body.get("projection"))
        shape = plan_shape(query, sort, projection, _collation(body))
    call.context.index_filters.clear(record, shape)
    return {}


async def list_filters(call: Call) -> Document:
    record = _record(call)
    filters = [] if record is None else call.context.index_filters.list(record)
    return {"filters": [found.as_document() for found in filters]}


def _record(call: Call) -> CollectionRecord | None:
    record = call.record()
    if record is not None and (record.is_view or "timeseries" in record.options):
        raise MongoFailure(166, f"Namespace {call.namespace} is a view or a time series, not a collection")
    return record


def _collation(body: Document) -> Document | None:
    collation = _object(body.get("collation"))
    if not collation:
        return None
    specification = read_collation(collation).specification
    return None if specification is None else dict(specification)


def _object(value: Any) -> Document:
    return value if type(value) is dict else {}


def _row(name: str, handler: Any, help: str, access: Access) -> Command:
    return Command(name, handler, help, target=Target.COLLECTION, access=access, ignores_unknown_fields=True)


COMMANDS = (
    _row("planCacheClear", clear_plans, "Forget plans.", Access.DATABASE_ADMIN),
    _row("planCacheSetFilter", set_filter, "Restrict the indexes of a query shape.", Access.DATABASE_ADMIN),
    _row("planCacheClearFilters", clear_filters, "Forget index filters.", Access.DATABASE_ADMIN),
    _row("planCacheListFilters", list_filters, "The index filters.", Access.READ),
)
