"""The scope of a command or of one of its statements: variables and collation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from asterism.apis.mongo.data.variables import CommandScope
from asterism.apis.mongo.javascript import ScriptInterpreter
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.collation import CollationProblem, make_collation
from asterism.values.bson.order import Collate
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.data.views import Source


class CollationChoice(NamedTuple):
    """A collation as the client wrote it, and the function that makes sort keys; both None for the order of bytes."""

    specification: Mapping[str, Any] | None = None
    collate: Collate | None = None


SIMPLE = CollationChoice()


def read_collation(specification: Document | None, default: Document | None = None) -> CollationChoice:
    """Return the collation of a command, or that of its collection if it has none."""
    chosen = specification or default
    if not chosen:
        return SIMPLE
    try:
        collation = make_collation(chosen)
    except CollationProblem as problem:
        raise MongoFailure(problem.code, problem.message) from None
    return SIMPLE if collation.key is None else CollationChoice(collation.specification, collation.key)


def check_view_collation(chosen: CollationChoice, source: Source) -> None:
    """Refuse a view under another collation than its own."""
    own = read_collation(None, source.collation)
    if own.specification != chosen.specification:
        raise MongoFailure(167, "Cannot override a view's default collation")


def open_scope(call: Call, *, let: Document | None = None, collation: CollationChoice = SIMPLE) -> CommandScope:
    """Return the scope of a command: its moment, its variables and its collation."""
    context = call.context
    return CommandScope(
        context.now(),
        context.cluster_time(),
        collate=collation.collate,
        let=let,
        javascript=ScriptInterpreter(call.services.scripts),
    )
