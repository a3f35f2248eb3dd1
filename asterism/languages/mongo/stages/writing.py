"""The stage $out, and the names of targets that $out and $merge share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import Batches, Position, RunContext, Scope, Stage, StageRow, Within
from asterism.languages.mongo.time_series import read_time_series
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Document

NAMESPACE_BYTES_MAX = 255
RESERVED_DATABASES: Final = frozenset({"admin", "config", "local"})
NO_WRITES_WITHIN: Final = frozenset({Within.FACET, Within.LOOKUP, Within.UNION, Within.VIEW})
_NOT_IN_DATABASE_NAMES: Final = frozenset('/\\. "$\x00')


@dataclass(frozen=True, slots=True)
class OutTarget:
    """The collection that $out replaces; `database` None is the one of the command."""

    database: str | None
    collection: str
    time_series: Document | None = None


def check_target_name(database: str, collection: str) -> None:
    """Refuse names that no collection can have, wherever the target lies."""
    if not database or any(character in _NOT_IN_DATABASE_NAMES for character in database):
        raise MongoFailure(73, f"Invalid database name: '{database}'")
    if not collection or collection.startswith(".") or "\x00" in collection:
        raise MongoFailure(73, f"Invalid namespace specified '{database}.{collection}'")


def check_ordinary_name(database: str, collection: str, stage: str) -> None:
    if collection.startswith("$") or len(f"{database}.{collection}".encode()) > NAMESPACE_BYTES_MAX:
        raise MongoFailure(20, f"Invalid target of {stage}: '{database}.{collection}'")


def _read_target(specification: Any, scope: Scope) -> OutTarget:
    if type(specification) is str:
        return OutTarget(None, specification)
    if type(specification) is not dict:
        raise MongoFailure(16990, f"$out only supports a string or object argument, not {type_name(specification)}")
    for name, value in specification.items():
        if name not in ("db", "coll", "timeseries"):
            raise MongoFailure(40415, f"BSON field '$out.{name}' is an unknown field.")
        if name != "timeseries" and value is not None and type(value) is not str:
            raise MongoFailure(
                14, f"BSON field '$out.{name}' is the wrong type '{type_name(value)}', expected type 'string'"
            )
    for name in ("db", "coll"):
        if specification.get(name) is None:
            raise MongoFailure(40414, f"BSON field '$out.{name}' is missing but a required field")
    series = specification.get("timeseries")
    time_series = None if series is None else read_time_series(series, "$out.timeseries")
    return OutTarget(specification["db"], specification["coll"], time_series)


def _compile_out(specification: Any, scope: Scope) -> Stage:
    target = _read_target(specification, scope)
    database = scope.place.database if target.database is None else target.database
    check_target_name(database, target.collection)
    if database in RESERVED_DATABASES:
        raise MongoFailure(31321, f"Can't $out to internal database: {database}")
    if target.collection.startswith("system."):
        raise MongoFailure(17385, f"Can't $out to special collection: {target.collection}")
    check_ordinary_name(database, target.collection, "$out")

    async def run(source: Batches, run_context: RunContext) -> Batches:
        options = {} if target.time_series is None else {"timeseries": target.time_series}
        await run_context.write_out(target.database, target.collection, source, options)
        return
        yield

    return Stage("$out", specification, run=run, meaning=target)


ROWS = (StageRow("$out", _compile_out, Position.LAST, NO_WRITES_WITHIN, in_transaction=False),)
