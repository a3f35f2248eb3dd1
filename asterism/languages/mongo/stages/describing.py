"""Stages that describe collections and the server: their arguments. The answers come from the run context."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import truncated_int64
from asterism.languages.mongo.stages.stage import (
    Batches,
    PipelinePlace,
    Position,
    RunContext,
    Scope,
    Stage,
    StageRow,
    Within,
)
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import INT32_MAX, is_nan
from asterism.values.bson.order import sort_key
from asterism.values.bson.types import Decimal128, Document

Answer = Callable[[RunContext], Awaitable[list[Document]]]
_CURRENT_OPERATION_FLAGS: Final = (
    "allUsers", "idleConnections", "idleCursors", "idleSessions", "localOps", "targetAllNodes", "truncateOps",
)  # fmt: skip


def _source(name: str, specification: Any, answer: Answer) -> Stage:
    async def run(_: Batches, run_context: RunContext) -> Batches:
        documents = await answer(run_context)
        if documents:
            yield documents

    return Stage(name, specification, run=run)


def _wrong_type(place: str, value: Any, wanted: str, code: int = 14) -> MongoFailure:
    return MongoFailure(code, f"BSON field '{place}' is the wrong type '{type_name(value)}', expected type '{wanted}'")


def _require_object(name: str, value: Any, code: int) -> Document:
    if type(value) is not dict:
        raise MongoFailure(code, f"{name} must take a nested object but found a value of type {type_name(value)}")
    return value


def _check_known(place: str, value: Document, known: tuple[str, ...], code: int = 40415) -> None:
    for name in value:
        if name not in known:
            raise MongoFailure(code, f"BSON field '{place}.{name}' is an unknown field.")


def _check_flags(place: str, value: Document, flags: tuple[str, ...], *, null_is_absent: bool = False) -> None:
    for name in flags:
        if name in value and type(value[name]) is not bool and not (null_is_absent and value[name] is None):
            raise _wrong_type(f"{place}.{name}", value[name], "bool")


def _require_database(name: str, place: PipelinePlace, code: int = 73) -> None:
    if place.collection is not None:
        raise MongoFailure(code, f"{name} must be run against a database with {{aggregate: 1}}, not a collection")


# --- about a collection -------------------------------------------------------------------------------------------


def _compile_collection_statistics(specification: Any, scope: Scope) -> Stage:
    options = _require_object("$collStats", specification, 5447000)
    for name, value in options.items():
        if name not in ("latencyStats", "storageStats", "count", "queryExecStats"):
            raise MongoFailure(40415, f"BSON field '$collStats.{name}' is an unknown field.")
        if value is None:
            continue
        if type(value) is not dict:
            raise _wrong_type(f"$collStats.{name}", value, "object")
        if name == "latencyStats":
            _check_known("$collStats.latencyStats", value, ("histograms",))
            _check_flags("$collStats.latencyStats", value, ("histograms",))
        elif name == "storageStats":
            read_scale(value.get("scale"))
        elif value:
            raise MongoFailure(31170, f"the {name} argument to $collStats must be an empty object")
    if scope.place.collection is None:
        raise MongoFailure(73, "$collStats needs a collection")
    wanted = {name: value for name, value in options.items() if value is not None}
    return _source("$collStats", specification, lambda run_context: run_context.collection_statistics(wanted))


def read_scale(value: Any) -> int:
    """Return the divisor of sizes: a positive whole number, at most the greatest int32."""
    if value is None:
        return 1
    if not is_number(value):
        raise _wrong_type("$collStats.storageStats.scale", value, "number")
    if not is_nan(value) and sort_key(value) >= sort_key(INT32_MAX):
        return INT32_MAX
    # A decimal is rounded half to even, a double cut off.
    is_decimal = type(value) is Decimal128 and bool(value.to_decimal().is_finite())
    whole = truncated_int64(round(value.to_decimal()) if is_decimal else value)
    if whole is None or whole < 1:
        raise MongoFailure(2, f"BSON field 'scale' value must be >= 1, actual value '{value}'")
    return whole


def _compile_index_statistics(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict or specification:
        raise MongoFailure(28803, "The $indexStats stage specification must be an empty object")
    if scope.place.collection is None:
        raise MongoFailure(73, "$indexStats needs a collection")
    return _source("$indexStats", specification, lambda run_context: run_context.index_statistics())


def _compile_plan_cache(specification: Any, scope: Scope) -> Stage:
    options = _require_object("$planCacheStats", specification, 9)
    _check_known("$planCacheStats", options, ("allHosts",), 9)
    if "allHosts" in options and type(options["allHosts"]) is not bool:
        raise _wrong_type("$planCacheStats.allHosts", options["allHosts"], "bool", 13111)
    if options.get("allHosts"):
        raise MongoFailure(4503200, "$planCacheStats stage supports allHosts parameter only for sharded clusters")
    if scope.place.collection is None:
        raise MongoFailure(73, "$planCacheStats needs a collection")
    return _system("$planCacheStats", options)


# --- about the server ---------------------------------------------------------------------------------------------


def _system(name: str, options: Document) -> Stage:
    return _source(name, options, lambda run_context: run_context.system_documents(name, options))


def _compile_current_operations(specification: Any, scope: Scope) -> Stage:
    options = _require_object("$currentOp", specification, 14)
    _check_known("$currentOp", options, _CURRENT_OPERATION_FLAGS)
    _check_flags("$currentOp", options, _CURRENT_OPERATION_FLAGS)
    if options.get("targetAllNodes"):
        raise MongoFailure(9, "$currentOp supports targetAllNodes parameter only for sharded clusters")
    if scope.place.collection is not None or scope.place.database != "admin":
        raise MongoFailure(73, "$currentOp must be run against the 'admin' database with {aggregate: 1}")
    return _source("$currentOp", specification, lambda run_context: run_context.current_operations(options))


def _read_users(place: str, options: Document) -> list[Document]:
    _check_known(place, options, ("users", "allUsers"))
    _check_flags(place, options, ("allUsers",), null_is_absent=True)
    users = options.get("users")
    if users is not None and type(users) is not list:
        raise _wrong_type(f"{place}.users", users, "array")
    found = [user for user in users or [] if user is not None]
    for user in found:
        if type(user) is not dict:
            raise _wrong_type(f"{place}.users", user, "object")
        _check_known(f"{place}.users", user, ("user", "db"))
        for name in ("user", "db"):
            if user.get(name) is not None and type(user[name]) is not str:
                raise _wrong_type(f"{place}.users.{name}", user[name], "string")
        for name in ("user", "db"):
            if user.get(name) is None:
                raise MongoFailure(40414, f"BSON field '{place}.users.{name}' is missing but a required field")
    if found and options.get("allUsers"):
        raise MongoFailure(12, f"{place} may not specify {{allUsers: true}} and {{users: [...]}} at the same time")
    return found


def _compile_local_sessions(specification: Any, scope: Scope) -> Stage:
    options = _require_object("$listLocalSessions", specification, 14)
    users = _read_users("$listLocalSessions", options)
    _require_database("$listLocalSessions", scope.place)
    return _system("$listLocalSessions", {"users": users, "allUsers": bool(options.get("allUsers"))})


def _compile_sessions(specification: Any, scope: Scope) -> Stage:
    options = _require_object("$listSessions", specification, 14)
    users = _read_users("$listSessions", options)
    if (scope.place.database, scope.place.collection) != ("config", "system.sessions"):
        raise MongoFailure(73, "$listSessions may only be run against config.system.sessions")
    return _system("$listSessions", {"users": users, "allUsers": bool(options.get("allUsers"))})


def _compile_cluster_catalog(specification: Any, scope: Scope) -> Stage:
    options = _require_object("$listClusterCatalog", specification, 9621302)
    _check_known("$listClusterCatalog", options, ("shards", "balancingConfiguration"))
    _check_flags("$listClusterCatalog", options, ("shards", "balancingConfiguration"))
    _require_database("$listClusterCatalog", scope.place, 9621301)
    return _system("$listClusterCatalog", options)


def _compile_query_settings(specification: Any, scope: Scope) -> Stage:
    options = _require_object("$querySettings", specification, 7746800)
    _check_known("$querySettings", options, ("showDebugQueryShape",))
    _check_flags("$querySettings", options, ("showDebugQueryShape",))
    _require_database("$querySettings", scope.place)
    return _system("$querySettings", options)


def _row(name: str, compile_stage: Callable[[Any, Scope], Stage]) -> StageRow:
    refused_in = frozenset({Within.FACET})
    return StageRow(name, compile_stage, Position.FIRST, refused_in, in_transaction=False, is_source=True)


ROWS = (
    _row("$collStats", _compile_collection_statistics),
    _row("$indexStats", _compile_index_statistics),
    _row("$planCacheStats", _compile_plan_cache),
    _row("$currentOp", _compile_current_operations),
    _row("$listLocalSessions", _compile_local_sessions),
    _row("$listSessions", _compile_sessions),
    _row("$listClusterCatalog", _compile_cluster_catalog),
    _row("$querySettings", _compile_query_settings),
)
