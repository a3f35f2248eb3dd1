"""The stages $group and $sortByCount.

The documents of a batch are dealt out to their groups first, and every accumulator is then given the list of them: one
call for many documents instead of one for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.constants import Constant
from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.javascript import runs_javascript
from asterism.languages.mongo.stages.accumulators import Accumulator, compile_accumulated_field
from asterism.languages.mongo.stages.keys import hash_key
from asterism.languages.mongo.stages.stage import (
    BATCH_DOCUMENTS,
    Batches,
    MemoryMeter,
    Pacer,
    RunContext,
    Scope,
    Stage,
    StageRow,
    evaluate_many,
)
from asterism.languages.mongo.stages.states import State
from asterism.values.bson.kinds import is_number
from asterism.values.bson.order import Collate
from asterism.values.bson.types import MISSING, Document

KeysOf = Callable[[list[Document], Variables], list[Any]]
Fields = list[tuple[str, Accumulator]]


class Groups:
    """The groups of a run: for every key the `_id` that was met first, and a state for each accumulator."""

    def __init__(self, fields: Fields, collate: Collate | None) -> None:
        self.fields = fields
        self.collate = collate
        self.states: dict[Any, tuple[Any, list[State]]] = {}

    def add(self, keys: list[Any], documents: list[Document], variables: Variables) -> int:
        """Add documents with the keys of their groups, and return how many groups are new."""
        dealt: dict[Any, list[Document]] = {}
        collate = self.collate
        created = 0
        for key, document in zip(keys, documents, strict=True):
            if key is MISSING:
                key = None
            hashed = key if type(key) is str and collate is None else hash_key(key, collate)
            members = dealt.get(hashed)
            if members is None:
                dealt[hashed] = [document]
                if hashed not in self.states:
                    created += 1
                    self.states[hashed] = (key, [field.start(key, variables) for _, field in self.fields])
            else:
                members.append(document)
        for hashed, members in dealt.items():
            for state, (_, field) in zip(self.states[hashed][1], self.fields, strict=True):
                state.add(field.inputs(members, variables))
        return created

    def add_to_one(self, key: Any, documents: list[Document], variables: Variables) -> None:
        """Add documents that all belong to one group."""
        if None not in self.states:
            self.states[None] = (key, [field.start(key, variables) for _, field in self.fields])
        for state, (_, field) in zip(self.states[None][1], self.fields, strict=True):
            state.add(field.inputs(documents, variables))

    def documents(self) -> list[Document]:
        names = [name for name, _ in self.fields]
        output = []
        for key, states in self.states.values():
            document = {"_id": key}
            for name, state in zip(names, states, strict=True):
                document[name] = state.result()
            output.append(document)
        return output


def compile_group_key(specification: Any, context: CompileContext) -> KeysOf | Constant:
    """Compile the `_id` of $group."""
    if type(specification) is dict and specification and next(iter(specification))[:1] != "$":
        for name, value in specification.items():
            if is_number(value) or type(value) is bool:
                raise MongoFailure(17390, f"$group does not support inclusion-style expressions: '{name}'")
    evaluate = context.compile(specification)
    if isinstance(evaluate, Constant):
        return evaluate
    return evaluate_many(specification, context)


def group_stage(
    name: str, specification: Any, key: KeysOf | Constant, fields: Fields, collate: Collate | None
) -> Stage:
    holds_input = any(field.holds_input for _, field in fields)
    in_turns = runs_javascript(specification)

    async def run(source: Batches, run_context: RunContext) -> Batches:
        meter = MemoryMeter(name, run_context)
        pacer = Pacer(run_context)
        groups = Groups(fields, collate)
        variables = run_context.variables
        async for batch in source:
            try:
                if in_turns:
                    created = await run_context.in_turns(_add, groups, key, batch, variables)
                else:
                    created = _add(groups, key, batch, variables)
            except MongoFailure as failure:
                raise _as_in_groups(failure) from None
            meter.add(batch if holds_input else batch[:created])
            await pacer.pause()
        output = await run_context.in_turns(groups.documents) if in_turns else groups.documents()
        for start in range(0, len(output), BATCH_DOCUMENTS):
            yield output[start : start + BATCH_DOCUMENTS]

    return Stage(name, specification, run=run)


def _add(groups: Groups, key: KeysOf | Constant, batch: list[Document], variables: Variables) -> int:
    """Add a batch to its groups, and return how many are new."""
    if isinstance(key, Constant):
        groups.add_to_one(None if key.value is MISSING else key.value, batch, variables)
        return 0
    return groups.add(key(batch, variables), batch, variables)


# The reference server computes groups with another engine, which has codes of its own for divisions by zero.
_CODES_IN_GROUPS = {(2, "can't $divide by zero"): 4848401, (16610, "can't $mod by zero"): 4848403}


def _as_in_groups(failure: MongoFailure) -> MongoFailure:
    code = _CODES_IN_GROUPS.get((failure.code, failure.message))
    return failure if code is None else MongoFailure(code, failure.message)


def _compile_group(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(15947, "a group's fields must be specified in an object")
    key: KeysOf | Constant | None = None
    fields: Fields = []
    for name, value in specification.items():
        if name == "_id":
            key = compile_group_key(value, scope.context)
        elif name == "$doingMerge":
            raise MongoFailure(17030, "$doingMerge should be true if present")
        else:
            try:
                fields.append((name, compile_accumulated_field(name, value, scope.context)))
            except MongoFailure as failure:
                raise _as_in_groups(failure) from None
    if key is None:
        raise MongoFailure(15955, "a group specification must include an _id")
    return group_stage("$group", specification, key, fields, scope.context.collate)


def _compile_sort_by_count(specification: Any, scope: Scope) -> Stage:
    if type(specification) is dict:
        if not specification or next(iter(specification))[:1] != "$":
            raise MongoFailure(40147, "the sortByCount field must be defined as a $-prefixed path or an expression")
    elif type(specification) is not str:
        raise MongoFailure(40149, "the sortByCount field must be specified as a string or as an object")
    elif specification[:1] != "$":
        raise MongoFailure(40148, "the sortByCount field must be defined as a $-prefixed path or an expression")
    count = compile_accumulated_field("count", {"$sum": 1}, scope.context)
    key = compile_group_key(specification, scope.context)
    group = group_stage("$sortByCount", specification, key, [("count", count)], scope.context.collate)
    assert group.run is not None
    grouped = group.run

    async def run(source: Batches, run_context: RunContext) -> Batches:
        output: list[Document] = []
        async for batch in grouped(source, run_context):
            output.extend(batch)
        output.sort(key=lambda document: -document["count"])
        for start in range(0, len(output), BATCH_DOCUMENTS):
            yield output[start : start + BATCH_DOCUMENTS]

    return Stage("$sortByCount", specification, run=run)


ROWS = (StageRow("$group", _compile_group), StageRow("$sortByCount", _compile_sort_by_count))
