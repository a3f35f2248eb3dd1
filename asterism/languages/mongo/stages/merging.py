"""The stage $merge: every document is put into another collection, by the rules for matching and other documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from asterism.languages.mongo.expressions.operator import Evaluate, Variables
from asterism.languages.mongo.expressions.paths import read_path, split_path
from asterism.languages.mongo.expressions.variables import check_bindable
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import (
    Batches,
    Position,
    RunContext,
    Scope,
    Stage,
    StageRow,
    Uniqueness,
    Within,
)
from asterism.languages.mongo.stages.writing import (
    NO_WRITES_WITHIN,
    RESERVED_DATABASES,
    check_ordinary_name,
    check_target_name,
)
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING, Document, ObjectId

_FIELDS: Final = ("into", "on", "let", "whenMatched", "whenNotMatched")


class Matched(Enum):
    REPLACE = "replace"
    KEEP = "keepExisting"
    MERGE = "merge"
    FAIL = "fail"
    PIPELINE = "pipeline"


class NotMatched(Enum):
    INSERT = "insert"
    DISCARD = "discard"
    FAIL = "fail"


# Modes of whenMatched that say nothing about documents that are not inserted.
_ONLY_WITH_INSERT: Final = frozenset({Matched.KEEP, Matched.FAIL})
# Written as updates by field, which the server applies in the order of the names.
_SORTED_ON_INSERT: Final = frozenset({Matched.KEEP, Matched.MERGE})


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The target of $merge and its modes; `database` None is the one of the command."""

    database: str | None
    collection: str
    on: tuple[str, ...] = ("_id",)
    matched: Matched = Matched.MERGE
    not_matched: NotMatched = NotMatched.INSERT
    # The stages of whenMatched, when it is a pipeline, and the values that it may use.
    stages: tuple[Any, ...] = ()
    let: Mapping[str, Evaluate] = field(default_factory=dict)

    async def check(self, run_context: RunContext) -> Uniqueness:
        """Refuse a target without a unique index over the fields of `on`."""
        uniqueness = await run_context.unique_on(self.database, self.collection, self.on)
        if uniqueness is Uniqueness.NONE:
            raise MongoFailure(
                51183,
                "Cannot find index to verify that join fields will be unique: $merge needs a unique index over exactly "
                f"the fields {', '.join(self.on)} with the collation of the aggregation.",
            )
        return uniqueness


# --- reading the specification ------------------------------------------------------------------------------------


def _wrong_type(name: str, value: Any, wanted: str, code: int = 14) -> MongoFailure:
    return MongoFailure(
        code, f"BSON field '$merge.{name}' is the wrong type '{type_name(value)}', expected type '{wanted}'"
    )


def _read_into(value: Any) -> tuple[str | None, str]:
    if type(value) is str:
        if not value:
            raise MongoFailure(5786800, "The collection name in $merge must not be empty")
        return None, value
    if type(value) is not dict:
        raise _wrong_type("into", value, "string or object", 51178)
    for name, part in value.items():
        if name not in ("db", "coll"):
            raise MongoFailure(40415, f"BSON field 'into.{name}' is an unknown field.")
        if part is not None and type(part) is not str:
            raise _wrong_type(f"into.{name}", part, "string")
    if not value.get("coll"):
        raise MongoFailure(5786801, "The field 'into.coll' of $merge must be the name of a collection")
    return value.get("db") or None, value["coll"]


def _read_on(value: Any) -> tuple[str, ...]:
    if type(value) is str:
        split_path(value)
        return (value,)
    if type(value) is not list:
        raise _wrong_type("on", value, "string or array", 51186)
    if not value:
        raise MongoFailure(51187, "The 'on' field of $merge must name at least one field")
    for path in value:
        if type(path) is not str:
            raise MongoFailure(51134, f"The 'on' field of $merge must hold strings, not {type_name(path)}")
        split_path(path)
    if len(set(value)) < len(value):
        raise MongoFailure(31465, "Found a duplicate field in the 'on' field of $merge")
    return tuple(value)


def _read_matched(value: Any) -> tuple[Matched, tuple[Any, ...]]:
    if type(value) is list:
        for stage in value:
            if type(stage) is not dict:
                raise _wrong_type("whenMatched", stage, "object")
        return Matched.PIPELINE, tuple(value)
    if type(value) is not str:
        raise _wrong_type("whenMatched", value, "string or array", 51191)
    if value not in {mode.value for mode in Matched} or value == Matched.PIPELINE.value:
        raise MongoFailure(2, f"Enumeration value '{value}' for field '$merge.whenMatched' is not a valid value.")
    return Matched(value), ()


def _read_not_matched(value: Any) -> NotMatched:
    if value is None:
        return NotMatched.INSERT
    if type(value) is not str:
        raise _wrong_type("whenNotMatched", value, "string")
    if value not in {mode.value for mode in NotMatched}:
        raise MongoFailure(2, f"Enumeration value '{value}' for field '$merge.whenNotMatched' is not a valid value.")
    return NotMatched(value)


def _read_let(value: Any, matched: Matched, scope: Scope) -> dict[str, Evaluate]:
    if value is not None and type(value) is not dict:
        raise _wrong_type("let", value, "object")
    if matched is not Matched.PIPELINE:
        if value is not None:
            raise MongoFailure(51199, "Cannot use 'let' variables with a 'whenMatched' mode other than a pipeline")
        return {}
    let = {}
    for name, specification in (value or {}).items():
        check_bindable(name)
        if name == "new" and specification != "$$ROOT":
            raise MongoFailure(
                51273, "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'"
            )
        let[name] = scope.context.compile(specification)
    let["new"] = scope.context.compile("$$ROOT")
    return let


def _read_target(specification: Any, scope: Scope) -> MergeTarget:
    if type(specification) is str:
        return MergeTarget(None, specification)
    if type(specification) is not dict:
        raise _wrong_type("into", specification, "string or object")
    for name in specification:
        if name not in _FIELDS:
            raise MongoFailure(40415, f"BSON field '$merge.{name}' is an unknown field.")
    if "into" not in specification:
        raise MongoFailure(40414, "BSON field '$merge.into' is missing but a required field")
    database, collection = _read_into(specification["into"])
    on = _read_on(specification["on"]) if "on" in specification else ("_id",)
    matched, stages = _read_matched(specification.get("whenMatched", Matched.MERGE.value))
    not_matched = _read_not_matched(specification.get("whenNotMatched"))
    let = _read_let(specification.get("let"), matched, scope)
    if matched in _ONLY_WITH_INSERT and not_matched is not NotMatched.INSERT:
        raise MongoFailure(
            51181,
            f"Combination of whenMatched mode '{matched.value}' and whenNotMatched mode '{not_matched.value}' is not "
            "supported",
        )
    return MergeTarget(database, collection, on, matched, not_matched, stages, let)


# --- running ------------------------------------------------------------------------------------------------------


class Merger:
    """The writes of one run."""

    def __init__(self, target: MergeTarget, run_context: RunContext, uniqueness: Uniqueness, scope: Scope) -> None:
        self.target = target
        self.run_context = run_context
        self.uniqueness = uniqueness
        self.scope = scope
        self.paths = [(path, tuple(path.split("."))) for path in target.on]
        # Compiled pipelines of whenMatched by the names of the variables that have values.
        self._pipelines: dict[frozenset[str], Any] = {}

    async def merge(self, document: Document) -> None:
        """Write one document as the modes say."""
        target = self.target
        if "_id" not in document and "_id" in target.on:
            document = {"_id": ObjectId(), **document}
        key = self._key(document)
        while True:
            before = await self.run_context.merge_find(target.database, target.collection, key)
            if before is None:
                await self._insert(document, key)
                return
            if target.matched is Matched.KEEP:
                return
            if target.matched is Matched.FAIL:
                raise MongoFailure(
                    11000,
                    "E11000 duplicate key error: $merge found a document with the same values of its 'on' fields",
                    details={"keyPattern": dict.fromkeys(target.on, 1), "keyValue": key},
                )
            change = self._change(document)
            if await self.run_context.merge_update(target.database, target.collection, before, change):
                return
            # The document was deleted after it had been found.

    def _key(self, document: Document) -> Document:
        key: Document = {}
        for path, parts in self.paths:
            value = read_path(document, parts)
            if type(value) is list:
                raise MongoFailure(51185, f"$merge write error: 'on' field '{path}' is an array")
            if (value is None or value is MISSING) and (self.uniqueness is Uniqueness.SPARSE):
                raise MongoFailure(51132, f"$merge write error: 'on' field '{path}' is missing, null or undefined")
            key[path] = None if value is MISSING else value
        return key

    async def _insert(self, document: Document, key: Document) -> None:
        target = self.target
        if target.not_matched is NotMatched.DISCARD:
            return
        if target.not_matched is NotMatched.FAIL:
            raise MongoFailure(
                13113, "$merge could not find a matching document in the target collection for at least one document"
            )
        if "_id" not in document:
            document = {"_id": ObjectId(), **document}
        if target.matched in _SORTED_ON_INSERT:
            # An upsert also writes the values that it looked for.
            document = {**{path: None for path in key if path not in document and "." not in path}, **document}
            names = sorted(name for name in document if name != "_id")
            document = {"_id": document["_id"], **{name: document[name] for name in names}}
        await self.run_context.merge_insert(target.database, target.collection, document)

    def _change(self, document: Document) -> Callable[[Document], Document]:
        """Return the function from the present state of a matching document to its new state."""
        if self.target.matched is Matched.MERGE:
            return lambda present: {**present, **document}
        if self.target.matched is Matched.REPLACE:
            return lambda present: document if "_id" in document else {"_id": present["_id"], **document}
        variables = self._variables(document)
        pipeline = self._pipeline(frozenset(variables))

        def run(present: Document) -> Document:
            output: Document = pipeline.transform(present, variables)
            return output if "_id" in output else {"_id": present["_id"], **output}

        return run

    def _variables(self, document: Document) -> Variables:
        outer = self.run_context.variables
        own = {name: evaluate(document, outer) for name, evaluate in self.target.let.items()}
        variables = {name: value for name, value in outer.items() if name not in own}
        # A variable without a value is not defined at all.
        variables.update((name, value) for name, value in own.items() if value is not MISSING)
        return variables

    def _pipeline(self, names: frozenset[str]) -> Any:
        found = self._pipelines.get(names)
        if found is None:
            context = self.scope.context.only_variables(names)
            place = self.scope.place.inside(Within.UPDATE, self.target.collection)
            found = self._pipelines[names] = self.scope.compile_pipeline(self.target.stages, context, place=place)
        return found


def _compile_merge(specification: Any, scope: Scope) -> Stage:
    target = _read_target(specification, scope)
    database = scope.place.database if target.database is None else target.database
    check_target_name(database, target.collection)
    if database in RESERVED_DATABASES:
        raise MongoFailure(31320, f"Cannot $merge to internal database: {database}")
    if target.collection.startswith("system."):
        raise MongoFailure(31319, f"Cannot $merge to special collection: {target.collection}")
    check_ordinary_name(database, target.collection, "$merge")

    async def run(source: Batches, run_context: RunContext) -> Batches:
        merger = Merger(target, run_context, await target.check(run_context), scope)
        failure: MongoFailure | None = None
        async for batch in source:
            for document in batch:
                run_context.check_time()
                try:
                    await merger.merge(document)
                except MongoFailure as problem:
                    # The others are written all the same, and the first failure is reported.
                    failure = failure or problem
        if failure is not None:
            raise failure
        return
        yield

    return Stage("$merge", specification, run=run, meaning=target)


ROWS = (StageRow("$merge", _compile_merge, Position.LAST, NO_WRITES_WITHIN, in_transaction=False),)
