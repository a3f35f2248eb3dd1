"""The command `explain`, and the `explain` of aggregate: how a command would be answered, without answering it."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import OBJECT, TEXT, check_arguments
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.aggregate import AggregateOptions, PreparedPipeline, find_source, read_options
from asterism.apis.mongo.data.find import FindOptions, new_selection
from asterism.apis.mongo.data.hints import resolve_hint
from asterism.apis.mongo.data.ordering import read_sort
from asterism.apis.mongo.data.scopes import open_scope, read_collation
from asterism.apis.mongo.data.selection import Selection
from asterism.apis.mongo.data.views import resolve
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.merging import MergeTarget
from asterism.models.collections.results import ScanPlan
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import MISSING, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

FIELDS: Final = {"verbosity": FieldRule(TEXT)}
_VERBOSITIES: Final = ("queryPlanner", "executionStats", "allPlansExecution")
_COMMAND: Final = FieldRule(OBJECT)


async def explain(call: Call) -> Document:
    inner = call.target
    if not isinstance(inner, dict):
        raise MongoFailure(14, "BSON field 'explain.explain' is the wrong type, expected type 'object'")
    verbosity = call.get("verbosity", "allPlansExecution")
    if verbosity not in _VERBOSITIES:
        raise MongoFailure(2, f"Enumeration value '{verbosity}' for field 'explain.verbosity' is not a valid value.")
    name = next(iter(inner), "")
    explained = _EXPLAINED.get(name)
    if explained is None:
        raise MongoFailure(59, f"Explain failed due to unknown command: {name}")
    from asterism.apis.mongo.table import COMMANDS

    command = COMMANDS.get(name)
    assert command is not None, "every explained command has a row"
    check_arguments(command, name, inner, call.sections)
    if name == "aggregate":
        return await explain_aggregate(call, read_options(call, inner), verbosity)
    return await _explain_selection(call, inner, explained(inner), verbosity)


def _find_part(inner: Document) -> Document:
    return inner


def _query_part(inner: Document) -> Document:
    shown: Document = {"filter": inner.get("query") or {}}
    return shown | {name: inner[name] for name in ("sort", "hint", "collation", "skip") if name in inner}


def _update_part(inner: Document) -> Document:
    return _statement_part((inner.get("updates") or [{}])[0])


def _delete_part(inner: Document) -> Document:
    return _statement_part((inner.get("deletes") or [{}])[0])


def _statement_part(statement: Document) -> Document:
    shown: Document = {"filter": statement.get("q") or {}}
    return shown | {name: statement[name] for name in ("sort", "hint", "collation") if name in statement}


_EXPLAINED: Final[dict[str, Callable[[Document], Document]]] = {
    "find": _find_part,
    "count": _query_part,
    "distinct": _query_part,
    "findAndModify": _query_part,
    "findandmodify": _query_part,
    "update": _update_part,
    "delete": _delete_part,
    "aggregate": _find_part,
}
# The stage that a command adds above the reading of documents.
_TOP_STAGES: Final = {"count": "COUNT", "update": "UPDATE", "delete": "DELETE", "findAndModify": "UPDATE"}


async def _explain_selection(call: Call, inner: Document, part: Document, verbosity: str) -> Document:
    command = next(iter(inner))
    name = inner[command]
    source = resolve(call, call.database, name)
    collation = read_collation(part.get("collation"), source.collation)
    scope = open_scope(call, let=inner.get("let"), collation=collation)
    namespace = f"{call.database}.{name}"
    if source.is_view:
        options = AggregateOptions(
            database=call.database,
            collection=name,
            pipeline=[{"$match": part["filter"]}] if part.get("filter") else [],
            collation=part.get("collation"),
        )
        return await explain_aggregate(call, options, verbosity)
    if source.collection is None:
        return _document(call, inner, namespace, {"stage": "EOF"}, part.get("filter") or {}, None, verbosity)
    if command == "find":
        selection = new_selection(call, source.collection, FindOptions(inner), scope, collation)
    else:
        hint = part.get("hint", MISSING)
        selection = Selection(
            source.collection,
            scope,
            part.get("filter") or {},
            order=read_sort(part.get("sort"), scope.context),
            hint=None if hint is MISSING else resolve_hint(hint, source.collection.record),
            collation=collation.specification,
        )
    plan, returned = await _measure(call, selection, verbosity)
    stages = winning_plan(plan, part, _TOP_STAGES.get(command))
    return _document(call, inner, namespace, stages, part.get("filter") or {}, (plan, returned), verbosity)


async def _measure(call: Call, selection: Selection, verbosity: str) -> tuple[ScanPlan, int]:
    """Return the plan and, if the execution was asked for, how many documents were found."""
    returned = 0
    found = selection.hits(call)
    try:
        async for hits in found:
            returned += len(hits)
            if verbosity == "queryPlanner":
                break
    finally:
        await found.aclose()
    return selection.plan, returned


def winning_plan(plan: ScanPlan, part: Document, top: str | None = None) -> Document:
    """Return the stages of a plan, the outermost first."""
    filter = part.get("filter") or {}
    stage: Document
    if plan.stage == "COLLSCAN" or plan.index is None:
        stage = {"stage": "COLLSCAN", **({"filter": filter} if filter else {}), "direction": plan.direction}
    elif plan.stage == "IDHACK":
        stage = {"stage": "IDHACK"} if len(filter) == 1 else _index_scan(plan, filter)
    else:
        stage = _index_scan(plan, filter)
    if part.get("sort") and not plan.is_sorted:
        stage = {"stage": "SORT", "sortPattern": part["sort"], "memLimit": 104857600, "inputStage": stage}
    if part.get("skip"):
        stage = {"stage": "SKIP", "skipAmount": part["skip"], "inputStage": stage}
    if part.get("limit"):
        stage = {"stage": "LIMIT", "limitAmount": part["limit"], "inputStage": stage}
    if part.get("projection"):
        stage = {"stage": "PROJECTION_DEFAULT", "transformBy": part["projection"], "inputStage": stage}
    return stage if top is None else {"stage": top, "inputStage": stage}


def _index_scan(plan: ScanPlan, filter: Document) -> Document:
    scan: Document = {
        "stage": "IXSCAN",
        "keyPattern": dict(plan.key_pattern or {}),
        "indexName": plan.index,
        "isMultiKey": False,
        "isUnique": plan.index == "_id_",
        "isSparse": False,
        "isPartial": False,
        "indexVersion": 2,
        "direction": plan.direction,
    }
    return {"stage": "FETCH", **({"filter": filter} if filter else {}), "inputStage": scan}


async def explain_aggregate(call: Call, options: AggregateOptions, verbosity: str) -> Document:
    source = find_source(call, options)
    prepared = PreparedPipeline(call, options, source)
    if isinstance(prepared.pipeline.writes_to, MergeTarget):
        await prepared.pipeline.writes_to.check(prepared.run_context)
    selection = prepared.selection()
    split = prepared.split
    part: Document = {"filter": split.filter or {}}
    if split.sort:
        part["sort"] = split.sort
    if split.skip:
        part["skip"] = split.skip
    if split.limit is not None:
        part["limit"] = split.limit
    measured = None if selection is None else await _measure(call, selection, verbosity)
    stages = {"stage": "EOF"} if measured is None else winning_plan(measured[0], part)
    document = _document(call, call.body, options.namespace, stages, part["filter"], measured, verbosity)
    if not split.rest.stages and not prepared.pipeline.is_sourceless:
        return document
    planner = {name: document.pop(name) for name in ("queryPlanner", "executionStats") if name in document}
    shown: list[Document] = [] if prepared.pipeline.is_sourceless else [{"$cursor": planner}]
    shown += [dict(stage) for stage in split.rest.specification]
    return {"explainVersion": document.pop("explainVersion"), "stages": shown, **document}


def _document(
    call: Call,
    command: Document,
    namespace: str,
    plan: Document,
    filter: Document,
    measured: tuple[ScanPlan, int] | None,
    verbosity: str,
) -> Document:
    shown = {name: value for name, value in command.items() if not name.startswith("$") and name != "lsid"}
    shape = blake2b(encode(decode(encode({"c": shown})))).hexdigest().upper()
    document: Document = {
        "explainVersion": "1",
        "queryPlanner": {
            "namespace": namespace,
            "parsedQuery": filter,
            "indexFilterSet": False,
            "queryHash": shape[:8],
            "planCacheKey": shape[8:16],
            "maxIndexedOrSolutionsReached": False,
            "maxIndexedAndSolutionsReached": False,
            "maxScansToExplodeReached": False,
            "winningPlan": plan,
            "rejectedPlans": [],
        },
    }
    if verbosity != "queryPlanner":
        document["executionStats"] = _statistics(plan, measured, call)
    document["queryShapeHash"] = shape[:64]
    document["command"] = {**shown, "$db": call.database}
    host, _, port = call.connection.local_address.rpartition(":")
    document["serverInfo"] = {
        "host": host,
        "port": int(port) if port.isdigit() else 0,
        "version": "7.0.0",
        "gitVersion": "asterism",
    }
    document["serverParameters"] = {"internalQueryMaxBlockingSortMemoryUsageBytes": 104857600}
    return document


def _statistics(plan: Document, measured: tuple[ScanPlan, int] | None, call: Call) -> Document:
    scan, returned = measured if measured is not None else (ScanPlan(), 0)
    statistics: dict[str, Any] = {
        "executionSuccess": True,
        "nReturned": returned,
        "executionTimeMillis": 0,
        "totalKeysExamined": scan.keys_examined,
        "totalDocsExamined": scan.documents_examined,
        "executionStages": {**plan, "nReturned": returned},
        # Beyond what MongoDB tells.
        "partitions": sorted(scan.partitions),
        "requestCharge": call.spent.charge,
        "allPlansExecution": [],
    }
    return statistics
