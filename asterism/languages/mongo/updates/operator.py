"""An update operator as a row of a table: its name and the function that makes a change of its argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Match
from asterism.languages.mongo.updates.paths import Parts
from asterism.values.bson.types import MISSING, Document


@dataclass(slots=True)
class ApplyState:
    """One application of an update to a document: what the changes read beside the value they change."""

    document: Document
    match: Match | None
    # Sources of $rename that were found, to be removed at the end.
    removals: list[Parts] = field(default_factory=list)

    def position(self, path: str) -> int:
        """Return the index that `$` stands for."""
        index = self.match.array_index(self.document) if self.match is not None else None
        if index is None:
            raise MongoFailure(2, f"The positional operator did not find the match needed from the query. Path: {path}")
        return index


# Returns the new value of a field from the old one; MISSING stands for an absent field on both sides. The same object
# is returned when nothing changes.
Change = Callable[[Any, ApplyState], Any]


class UpdateOperator(NamedTuple):
    name: str
    # Gets the argument of one field and the path of the field.
    compile: Callable[[Any, str, CompileContext], Change]
    # True if a path through a value that is neither document nor array is passed over rather than refused.
    tolerates_dead_paths: bool = False
    only_on_insert: bool = False


def keep_missing(change: Callable[[Any], Any]) -> Change:
    """A change of existing values only."""
    return lambda old, _state: old if old is MISSING else change(old)
