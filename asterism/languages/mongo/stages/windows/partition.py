"""A partition as window functions see it: its documents in order, and the values of expressions over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.expressions.paths import read_path
from asterism.languages.mongo.stages.ordering import SortRule
from asterism.languages.mongo.stages.windows.bounds import Frames, Window
from asterism.values.bson.types import Document


@dataclass(slots=True)
class Partition:
    documents: list[Document]
    ordering: SortRule | None
    variables: Variables

    def __len__(self) -> int:
        return len(self.documents)

    def frames(self, window: Window) -> Frames:
        return window.frames(self.documents, self.ordering)

    def sort_values(self) -> list[Any]:
        """Return the values of the first field of the order."""
        assert self.ordering is not None, "functions that need an order were checked to have one"
        parts = self.ordering.fields[0].parts
        return [read_path(document, parts) for document in self.documents]


# Returns the value for every document of a partition.
Evaluate = Callable[[Partition], list[Any]]


class FunctionScope(NamedTuple):
    """The surroundings of a function in its stage."""

    context: CompileContext
    # None without `sortBy`, and with an empty one.
    ordering: SortRule | None
    # The `window` as the client wrote it, or MISSING.
    window: Any
    has_sort: bool
