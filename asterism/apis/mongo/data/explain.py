"""The command `explain`, and the `explain` of aggregate: how a command would be answered, without answering it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from asterism.apis.mongo.arguments import MISSING_FIELD, TEXT, check_arguments
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.aggregate import AggregateOptions, PreparedPipeline, find_source, read_options
from asterism.apis.mongo.data.explain_plans import SORT_BYTES_MAX, execution_stages, winning_plan
from asterism.apis.mongo.data.find import FindOptions, new_selection
from asterism.apis.mongo.data.hints import resolve_hint
from asterism.apis.mongo.data.ordering import read_sort
from asterism.apis.mongo.data.scopes import open_scope, read_collation
from asterism.apis.mongo.data.selection import Selection
from asterism.apis.mongo.data.views import resolve
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.query_shapes import plan_hash, plan_shape, query_hash
from asterism.models.collections.results import ScanPlan
from asterism.values.bson.types import MISSING, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

FIELDS: Final = {"verbosity": FieldRule(TEXT)}
_VERBOSITIES: Final = ("queryPlanner", "executionStats", "allPlansExecution")
# Fields that are not shown of the command.
_GENERAL: Final = frozenset({"lsid", "readConcern", "maxTimeMS"})


async def explain(call: Call) -> Document:
    inner = call.target
    if inner is None:
        raise MongoFailure(MISSING_FIELD, "BSON field 'explain.explain' is missing but a required field")
    if not isinstance(inner, dict):
        raise MongoFailure(14, "BSON field 'explain.explain' is the wrong type, expected type 'object'")
    verbosity = call.get("verbosity", "allPlansExecution")
    if verbosity not in _VERBOSITIES:
        raise MongoFailure(2, f"Enumeration value '{verbosity}' for field 'explain.verbosity' is not a valid value.")
    from asterism.apis.mongo.table import COMMANDS

    name = next(iter(inner), "")
    command = COMMANDS.get(name)
    if command is None:
        raise MongoFailure(59, f"Explain failed due to unknown command: {name}")
    explained = _EXPLAINED.get(command.name)
    if explained is None:
        raise MongoFailure(20, f"Explain does not work with the command '{name}'")
    check_arguments(command, name, inner, call.sections)
    if command.name == "aggregate":
        return await explain_aggregate(call, read_options(call, inner), verbosity)
    return await _explain_selection(call, inner, explained, verbosity)


# --- the parts of commands that are planned -------------------------------------------------------------------------


def _find_part(inner: Document) -> Document:
    return inner


def _query_part(inner: Document) -> Document:
    shown: Document = {"filter": inner.get("query") or {}}
    return shown | {name: inner[name] for name in ("sort", "hint", "collation", "skip", "limit") if name in inner}


def _statement_part(field: str) -> Callable[[Document], Document]:
    def part(inner: Document) -> Document:
        statement = (inner.get(field) or [{}])[0]
        shown: Document = {"filter": statement.get("q") or {}}
        return shown | {name: statement[name] for name in ("sort", "hint", "collation") if name in statement}

    return part


class _Explained(NamedTuple):
    part: Callable[[Document], Document]
    # The stage that the command adds above the reading of documents.
    top: Callable[[Document], str | None] = lambda _: None


_EXPLAINED: Final[dict[str, _Explained]] = {
    "find": _Explained(_find_part),
    "aggregate": _Explained(_find_part),
    "count": _Explained(_query_part, lambda _: "COUNT"),
    "distinct": _Explained(_query_part),
    "findAndModify": _Explained(_query_part, lambda inner: "DELETE" if inner.get("remove") else "UPDATE"),
    "update": _Explained(_statement_part("updates"), lambda _: "UPDATE"),
    "delete": _Explained(_statement_part("deletes"), lambda _: "DELETE"),
}


# --- running --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Measured:
    """A plan, and the numbers of its execution, if there was one."""

    plan: ScanPlan
    matched: int = 0
    returned: int = 0
    milliseconds: int = 0


async def _measure(call: Call, selection: Selection, part: Document, verbosity: str) -> _Measured:
    """Return the plan and, if the execution was asked for, how many documents it finds. Nothing is changed."""
    started = call.context.monotonic_seconds()
    skip, limit = int(part.get("skip") or 0), int(part.get("limit") or 0)
    matched = 0
    found = selection.hits(call)
    try:
        async for hits in found:
            matched += len(hits)
            if verbosity == "queryPlanner" or (limit and matched >= skip + limit):
                break
    finally:
        await found.aclose()
    returned = max(0, matched - skip)
    if limit:
        returned = min(returned, limit)
    milliseconds = int((call.context.monotonic_seconds() - started) * 1000)
    return _Measured(selection.plan, matched, returned, milliseconds)


async def _explain_selection(call: Call, inner: Document, explained: _Explained, verbosity: str) -> Document:
    name = inner[next(iter(inner))]
    part = explained.part(inner)
    source = resolve(call, call.database, name)
    collation = read_collation(part.get("collation"), source.collation)
    scope = open_scope(call, let=inner.get("let"), collation=collation)
    if source.is_view:
        options = AggregateOptions(
            database=call.database,
            collection=name,
            pipeline=[{"$match": part["filter"]}] if part.get("filter") else [],
            collation=part.get("collation"),
        )
        return await explain_aggregate(call, options, verbosity)
    top = explained.top(inner)
    collection = source.collection
    if collection is None:
        eof: Document = {"stage": "EOF"}
        stages = eof if top is None else {"stage": top, "inputStage": eof}
        return _document(call, inner, f"{call.database}.{name}", stages, part, None, verbosity)
    if "find" in inner:
        selection = new_selection(call, collection, FindOptions(inner), scope, collation)
    else:
        hint = part.get("hint", MISSING)
        selection = Selection(
            collection,
            scope,
            part.get("filter") or {},
            order=read_sort(part.get("sort"), scope.context),
            hint=None if hint is MISSING else resolve_hint(hint, collection.record),
            collation=collation.specification,
            allowed=call.context.index_filters.allowed(
                collection.record, part.get("filter") or {}, part.get("sort"), None, collation.specification
            ),
        )
    measured = await _measure(call, selection, part, verbosity)
    stages = winning_plan(measured.plan, part, collection.record, top)
    planned = {**part, "collation": collation.specification}
    is_filtered = selection.query.allowed is not None
    return _document(
        call, inner, f"{call.database}.{name}", stages, planned, measured, verbosity, is_filtered=is_filtered
    )


async def explain_aggregate(call: Call, options: AggregateOptions, verbosity: str) -> Document:
    source = find_source(call, options)
    prepared = PreparedPipeline(call, options, source)
    selection = prepared.selection()
    split = prepared.split
    part: Document = {"filter": split.filter or {}}
    if split.sort:
        part["sort"] = split.sort
    if split.skip:
        part["skip"] = split.skip
    if split.limit is not None:
        part["limit"] = split.limit
    planned = part | {"collation": prepared.collation.specification, "stages": split.rest.specification}
    stages: Document = {"stage": "EOF"}
    measured: _Measured | None = None
    if selection is not None:
        assert source.record is not None, "only a collection is selected from"
        measured = await _measure(call, selection, part, verbosity)
        stages = winning_plan(measured.plan, part, source.record)
    command = call.target if call.command.name == "explain" else call.body
    is_filtered = selection is not None and selection.query.allowed is not None
    document = _document(
        call, command, options.namespace, stages, planned, measured, verbosity, is_filtered=is_filtered
    )
    if not split.rest.stages and not prepared.pipeline.is_sourceless:
        return document
    planner = {name: document.pop(name) for name in ("queryPlanner", "executionStats") if name in document}
    shown: list[Document] = [] if prepared.pipeline.is_sourceless else [{"$cursor": planner}]
    shown += [dict(stage) for stage in split.rest.specification]
    return {"explainVersion": document.pop("explainVersion"), "stages": shown, **document}


# --- the answer -----------------------------------------------------------------------------------------------------


def _document(
    call: Call,
    command: Document,
    namespace: str,
    plan: Document,
    part: Document,
    measured: _Measured | None,
    verbosity: str,
    *,
    is_filtered: bool = False,
) -> Document:
    shown = {name: value for name, value in command.items() if not name.startswith("$") and name not in _GENERAL}
    filter = part.get("filter") or {}
    shape = plan_hash(
        plan_shape(filter, part.get("sort"), part.get("projection"), part.get("collation"), part.get("stages", ()))
    )
    document: Document = {
        "explainVersion": "1",
        "queryPlanner": {
            "namespace": namespace,
            "parsedQuery": filter,
            "indexFilterSet": is_filtered,
            "queryHash": shape,
            "planCacheShapeHash": shape,
            "planCacheKey": plan_hash(f"{shape} {namespace}"),
            "optimizationTimeMillis": 0,
            "maxIndexedOrSolutionsReached": False,
            "maxIndexedAndSolutionsReached": False,
            "maxScansToExplodeReached": False,
            "prunedSimilarIndexes": False,
            "winningPlan": plan,
            "rejectedPlans": [],
        },
    }
    if verbosity != "queryPlanner":
        document["executionStats"] = _statistics(plan, measured or _Measured(ScanPlan()), call)
        if verbosity == "allPlansExecution":
            document["executionStats"]["allPlansExecution"] = []
    document["queryShapeHash"] = query_hash(shown)
    document["command"] = {**shown, "$db": call.database}
    host, _, port = call.connection.local_address.rpartition(":")
    document["serverInfo"] = {
        "host": host,
        "port": int(port) if port.isdigit() else 0,
        "version": "7.0.0",
        "gitVersion": "asterism",
    }
    document["serverParameters"] = {"internalQueryMaxBlockingSortMemoryUsageBytes": SORT_BYTES_MAX}
    return document


def _statistics(plan: Document, measured: _Measured, call: Call) -> Document:
    scan = measured.plan
    is_total = plan["stage"] in ("UPDATE", "DELETE", "COUNT")
    counts: dict[str, Any] = {
        "returned": measured.returned,
        "matched": measured.matched,
        "documents": scan.documents_examined,
        "keys": scan.keys_examined,
        "upserts": 0,
    }
    return {
        "executionSuccess": True,
        "nReturned": 0 if is_total else measured.returned,
        "executionTimeMillis": measured.milliseconds,
        "totalKeysExamined": scan.keys_examined,
        "totalDocsExamined": scan.documents_examined,
        "executionStages": execution_stages(plan, counts),
        # Beyond what MongoDB tells.
        "partitions": sorted(scan.partitions),
        "requestCharge": call.spent.charge,
    }
