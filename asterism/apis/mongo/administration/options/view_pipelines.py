"""`viewOn` and `pipeline`: views are checked when they are made, so that reading one cannot fail for a reason of its
definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import check_collection_name
from asterism.apis.mongo.data.views import DEPTH_MAX
from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.pipeline import Pipeline, compile_pipeline
from asterism.languages.mongo.stages.stage import PipelinePlace
from asterism.values.bson.codec import encode

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

PIPELINE_BYTES_MAX: Final = 16 * 1024 * 1024
_WRITING: Final = frozenset({"$out", "$merge", "$changeStream"})
# Stages that make documents of their own, so that there is no collection to view.
_SOURCES: Final = frozenset(
    {"$currentOp", "$listSessions", "$listLocalSessions", "$documents", "$listClusterCatalog", "$queryStats",
     "$querySettings", "$shardedDataDistribution"}
)  # fmt: skip


def check_view(call: Call, name: str, view_on: str, pipeline: list[Any]) -> None:
    """Refuse a view that cannot be read: a wrong pipeline, a cycle, a chain that is too long."""
    if not view_on:
        raise MongoFailure(2, "'viewOn' cannot be empty")
    check_collection_name(view_on)
    if view_on.startswith("$"):
        raise MongoFailure(73, f"Invalid namespace for 'viewOn': {call.database}.{view_on}")
    for stage in pipeline:
        first = next(iter(stage), "") if isinstance(stage, dict) else ""
        if first in _WRITING:
            raise MongoFailure(167, f"The aggregation stage {first} is not supported on a view")
        if first in _SOURCES:
            raise MongoFailure(73, f"The aggregation stage {first} cannot be used in the definition of a view")
    if len(encode({"pipeline": pipeline})) > PIPELINE_BYTES_MAX:
        raise MongoFailure(195, f"View pipeline exceeds maximum size; maximum size is {PIPELINE_BYTES_MAX}")
    context = new_context(call.now, call.cluster_time)
    compiled = compile_pipeline(pipeline, context, place=PipelinePlace(call.database, view_on))
    _check_graph(call, name, [view_on, *_collections(call, compiled)])


def _collections(call: Call, pipeline: Pipeline) -> list[str]:
    return [name for database, name in pipeline.reads if database in (None, call.database)]


def _check_graph(call: Call, name: str, reads: list[str]) -> None:
    """Refuse a view that would lead back to itself, or through too many others."""
    level, depth = list(dict.fromkeys(reads)), 1
    while level:
        if name in level:
            raise MongoFailure(5, f"View cycle detected: {call.database}.{name} would be defined by itself")
        below: list[str] = []
        for other in level:
            record = call.record(other)
            if record is not None and record.is_view:
                below += [record.options["viewOn"], *_read_by(call, record.options.get("pipeline") or [])]
        level, depth = list(dict.fromkeys(below)), depth + 1
        if depth > DEPTH_MAX and level:
            raise MongoFailure(165, f"View depth limit exceeded; maximum depth is {DEPTH_MAX}")


def _read_by(call: Call, stages: list[Any]) -> list[str]:
    context = new_context(call.now, call.cluster_time)
    return _collections(call, compile_pipeline(stages, context, place=PipelinePlace(call.database)))
