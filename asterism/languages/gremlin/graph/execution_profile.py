"""Reports on a traversal: the service's execution profile, TinkerPop's profile, and the plan without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from asterism.languages.gremlin.engine.measuring import StepWork
from asterism.languages.gremlin.graph.profile import StoreOperation
from asterism.languages.gremlin.graph.reads import GET_EDGES, GET_VERTICES
from asterism.languages.gremlin.values.results import Metrics, TraversalMetrics

# The service's names of steps that do not ask the store.
_OPERATORS = {
    "coalesce": "Coalesce",
    "inject": "ConstantSourceOperator",
    "constant": "ConstantSourceOperator",
    "count": "ProjectAggregation",
    "fold": "ProjectAggregation",
    "sum": "ProjectAggregation",
    "min": "ProjectAggregation",
    "max": "ProjectAggregation",
    "mean": "ProjectAggregation",
    "group": "ProjectAggregation",
    "groupCount": "ProjectAggregation",
    "addE": "CartesianProductOperator",
}
_LAST = "ProjectOperator"
_INCOMING = "incoming"
_SINK = "_sink"

Works = Sequence[StepWork[StoreOperation]]


def execution_profile(
    text: str, works: Works, *, seconds: float, charge: float, result_count: int, store_calls: int
) -> dict[str, Any]:
    """Return the answer of `executionProfile()`: the service's, with partitions, request units and advice beside."""
    metrics = [metric for work in works for metric in _metrics_of(work)]
    shown = sum(metric["time"] for metric in metrics)
    metrics.append({"name": _LAST, "time": max(0.0, _milliseconds(seconds) - shown), "counts": _counts(result_count)})
    total = sum(metric["time"] for metric in metrics) or 1.0
    return {
        "gremlin": text,
        "totalTime": round(_milliseconds(seconds)),
        "metrics": [_with_share(metric, total) for metric in metrics],
        "requestCharge": round(charge, 2),
        "storeCalls": store_calls,
        "advice": advice(works),
    }


def _metrics_of(work: StepWork[StoreOperation]) -> list[dict[str, Any]]:
    """Return a metric for each kind of operation of a step, in their order, or one for the step."""
    if not work.operations:
        name = _OPERATORS.get(work.name, work.name[:1].upper() + work.name[1:])
        return [{"name": name, "time": _milliseconds(work.seconds), "counts": _counts(work.elements)}]
    found: list[dict[str, Any]] = []
    for kind, operations in groupby(work.operations, key=lambda operation: operation.kind):
        own = list(operations)
        found.append(
            {
                "name": kind,
                "time": _milliseconds(sum(operation.seconds for operation in own)),
                "counts": _counts(sum(operation.count for operation in own)),
                "storeOps": [_store_operation(operation) for operation in own],
            }
        )
    # The last kind has made the results, in the rest of the step's time.
    last = found[-1]
    last["counts"] = _counts(work.elements) if last["name"] != "WriteElements" else last["counts"]
    last["time"] += max(0.0, _milliseconds(work.seconds) - sum(metric["time"] for metric in found))
    return found


def _with_share(metric: dict[str, Any], total: float) -> dict[str, Any]:
    time = round(metric.pop("time"), 3)
    store = {"storeOps": metric["storeOps"]} if "storeOps" in metric else {}
    share = {"percentTime": round(100 * time / total, 2)}
    return {"name": metric["name"], "time": time, "annotations": share, "counts": metric["counts"], **store}


def _store_operation(operation: StoreOperation) -> dict[str, Any]:
    index = {"index": operation.index} if operation.index else {}
    return {
        "fanoutFactor": len(operation.partitions),
        "count": operation.count,
        "size": operation.size_bytes,
        "time": round(_milliseconds(operation.seconds), 3),
        "partitions": [str(number) for number in sorted(operation.partitions)],
        "requestCharge": round(operation.charge, 2),
        **index,
    }


def advice(works: Works) -> list[str]:
    """Return a sentence for each step that asked more partitions than it would have to, if the traversal said more."""
    found: list[str] = []
    for work in works:
        for operation in work.operations:
            count = len(operation.partitions)
            if count < 2:
                continue
            if operation.kind == GET_EDGES and operation.index == _SINK:
                found.append(
                    f"{work.name}() asked {count} partitions for edges, which lie with their sources. Follow edges in "
                    "their direction, or let the graph keep incoming edges."
                )
            elif operation.kind in (GET_VERTICES, GET_EDGES) and work.name in ("V", "E"):
                found.append(f"{work.name}() was looked for in {count} partitions; give the partition key.")
    return list(dict.fromkeys(found))


def traversal_metrics(works: Works, *, seconds: float) -> TraversalMetrics:
    """Return the answer of `profile()`."""
    metrics = [
        Metrics(
            f"{place}.0.0()",
            work.name,
            int(work.seconds * 1e9),
            {"traverserCount": work.traversers, "elementCount": work.elements},
            {
                "percentDur": round(100 * work.seconds / seconds, 2) if seconds else 0.0,
                **({"requestCharge": round(_charge(work), 2)} if work.operations else {}),
            },
        )
        for place, work in enumerate(works)
    ]
    return TraversalMetrics(int(seconds * 1e9), metrics)


def explanation(text: str, steps: Sequence[tuple[str, object]]) -> dict[str, Any]:
    """Return the answer of `explain()`: the steps of the plan, with the elements that each will ask the graph for."""
    return {"gremlin": text, "steps": [{"step": name, **_described(step)} for name, step in steps]}


def _described(step: object) -> dict[str, Any]:
    found: dict[str, Any] = {"operator": type(step).__name__.removesuffix("Step")}
    lookups = getattr(step, "lookups", None)
    if lookups is None:
        lookup = getattr(step, "lookup", None)
        lookups = [] if lookup is None else [lookup]
    asked = [_lookup(lookup) for lookup in lookups]
    return {**found, "lookups": asked} if asked else found


def _lookup(lookup: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for name in ("ids", "keys", "labels"):
        given = getattr(lookup, name)
        if given is not None:
            found[name] = list(given)
    if lookup.places is not None:
        found["places"] = [list(place) for place in lookup.places]
    if lookup.conditions:
        found["conditions"] = [f"{condition.name} {condition.operator}" for condition in lookup.conditions]
    if lookup.limit is not None:
        found["limit"] = lookup.limit
    return found


def _charge(work: StepWork[StoreOperation]) -> float:
    return sum(operation.charge for operation in work.operations)


def _counts(count: int) -> dict[str, int]:
    return {"resultCount": count}


def _milliseconds(seconds: float) -> float:
    return seconds * 1000
