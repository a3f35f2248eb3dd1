"""The stages of a plan as `explain` shows them, the outermost first."""

from __future__ import annotations

from typing import Any, Final

from asterism.languages.mongo.indexes.key_pattern import is_wildcard_path
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.results import ScanPlan
from asterism.values.bson.types import Document

SORT_BYTES_MAX: Final = 104_857_600


def winning_plan(plan: ScanPlan, part: Document, record: CollectionRecord, top: str | None = None) -> Document:
    """Return the stages of a plan. `part` has filter, sort, skip, limit and projection."""
    filter = part.get("filter") or {}
    stage: Document
    if plan.stage == "COLLSCAN" or plan.index is None:
        stage = {"stage": "COLLSCAN", **({"filter": filter} if filter else {}), "direction": plan.direction}
    elif plan.stage == "IDHACK" and len(filter) == 1:
        stage = {"stage": "IDHACK"}
    else:
        stage = {"stage": "FETCH", **_rest(filter, plan), "inputStage": index_scan(plan, record.index(plan.index))}
    if part.get("sort") and not plan.is_sorted and "$natural" not in part["sort"]:
        stage = {"stage": "SORT", "sortPattern": part["sort"], "memLimit": SORT_BYTES_MAX, "type": "simple",
                 "inputStage": stage}  # fmt: skip
    if part.get("skip"):
        stage = {"stage": "SKIP", "skipAmount": part["skip"], "inputStage": stage}
    if part.get("limit"):
        stage = {"stage": "LIMIT", "limitAmount": part["limit"], "inputStage": stage}
    if part.get("projection"):
        name = "PROJECTION_SIMPLE" if _is_simple(part["projection"]) else "PROJECTION_DEFAULT"
        stage = {"stage": name, "transformBy": part["projection"], "inputStage": stage}
    return stage if top is None else {"stage": top, "inputStage": stage}


def _rest(filter: Document, plan: ScanPlan) -> Document:
    """Return the conditions that the index does not decide."""
    keys = plan.key_pattern or {}
    rest = {name: value for name, value in filter.items() if name not in keys}
    return {"filter": rest} if rest else {}


def index_scan(plan: ScanPlan, index: IndexRecord | None) -> Document:
    options = {} if index is None else index.options
    keys = dict(plan.key_pattern or {})
    scan: Document = {
        "stage": "IXSCAN",
        "keyPattern": keys,
        "indexName": plan.index,
        **({"collation": options["collation"]} if "collation" in options else {}),
        "isMultiKey": plan.is_multikey,
        "multiKeyPaths": {path: [] for path in keys},
        "isUnique": plan.index == "_id_" or bool(options.get("unique")),
        "isSparse": bool(options.get("sparse")) or any(map(is_wildcard_path, keys)),
        "isPartial": "partialFilterExpression" in options,
        "indexVersion": 2,
        "direction": plan.direction,
    }
    return scan


def _is_simple(projection: Document) -> bool:
    """Return whether fields are only taken or left."""
    return all(type(value) in (int, float, bool) and "." not in name for name, value in projection.items())


def execution_stages(plan: Document, counts: dict[str, Any]) -> Document:
    """Return the stages with their counts. Only the total of the documents that were read is known, so that it stands
    at the stages that read."""
    stages = {name: value for name, value in plan.items() if name != "inputStage"}
    stages["nReturned"] = counts["returned"]
    match plan["stage"]:
        case "COLLSCAN" | "FETCH" | "IDHACK":
            stages["docsExamined"] = counts["documents"]
        case "IXSCAN":
            stages["nReturned"] = counts["documents"]
            stages["keysExamined"] = counts["keys"]
        case "UPDATE":
            stages |= {"nReturned": 0, "nMatched": counts["matched"], "nWouldModify": counts["matched"],
                       "nWouldUpsert": counts["upserts"]}  # fmt: skip
        case "DELETE":
            stages |= {"nReturned": 0, "nWouldDelete": counts["matched"]}
        case "COUNT":
            stages |= {"nReturned": 0, "nCounted": counts["matched"], "nSkipped": 0}
        case "EOF":
            pass
        case _:
            pass
    if "inputStage" in plan:
        inner = {**counts, "returned": counts["matched"]} if plan["stage"] in _TOTALS else counts
        stages["inputStage"] = execution_stages(plan["inputStage"], inner)
    return stages


_TOTALS: Final = frozenset({"UPDATE", "DELETE", "COUNT"})
