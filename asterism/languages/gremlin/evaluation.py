"""The promise of the language to a door: a text or a traversal goes in, batches of results come out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from asterism.languages.gremlin.tree import Traversal

# The two sets of rules, told apart by the request: where they differ, `cosmos` is as the service does it (`'id'` as a
# text is T.id, ...), `tinkerpop` as TinkerPop's own server.
Dialect = Literal["cosmos", "tinkerpop"]


@dataclass(frozen=True, slots=True)
class GraphName:
    """A graph of an account: a container, by its database and name."""

    database: str
    name: str
    # The owner of the database; empty for the default account of the server.
    account: str = ""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """The request's wishes and the sender's rights."""

    dialect: Dialect
    # None for the server's own limit, which a request cannot pass either.
    timeout_seconds: float | None = None
    # False: results may be elements without their properties, so they need not be loaded.
    materializes_properties: bool = True
    # False for a read-only key: a step that writes is refused (`asterism.errors.Forbidden`).
    may_write: bool = True


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The wishes that a traversal states itself, by `g.with(...)`; None where it has none. They go before those of its
    request."""

    timeout_seconds: float | None = None
    batch_size: int | None = None
    materializes_properties: bool | None = None


class Evaluation(Protocol):
    """A traversal under way. Nothing runs before its batches are asked for."""

    @property
    def charge(self) -> float:
        """Request units so far, also after a failure."""
        ...

    @property
    def source_options(self) -> SourceOptions:
        """The traversal's own options, known with the first batch."""
        ...

    def batches(self) -> AsyncIterator[list[tuple[Any, int]]]:
        """Yield results, each with its bulk: the number of times that it counts.

        Closing the iterator cancels the traversal. Raises failures of `languages.gremlin.failure` and errors of
        `asterism.errors`. Elements come with their documents, unless the options say that they need not.
        """
        ...


class GraphEngine(Protocol):
    """Evaluates traversals on the graphs of the server."""

    def evaluate_text(
        self, graph: GraphName, text: str, bindings: Mapping[str, Any], options: EvaluationOptions, /
    ) -> Evaluation: ...

    def evaluate_bytecode(
        self, graph: GraphName, traversal: Traversal, options: EvaluationOptions, /
    ) -> Evaluation: ...
