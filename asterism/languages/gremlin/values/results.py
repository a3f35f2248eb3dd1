"""Results of traversals that are neither plain values nor elements of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any


class Path:
    """The places that a traverser went through, each with the labels of its step."""

    __slots__ = ("labels", "objects")

    def __init__(self, labels: Sequence[Set[str]], objects: Sequence[Any]) -> None:
        self.labels = labels
        self.objects = objects

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and (
            list(self.objects) == list(other.objects) and list(self.labels) == list(other.labels)
        )

    def __hash__(self) -> int:
        # Objects may be lists, which have no hash: the length is enough to tell most paths apart.
        try:
            return hash(tuple(self.objects))
        except TypeError:
            return hash(len(self.objects))

    def __repr__(self) -> str:
        return f"path[{', '.join(map(str, self.objects))}]"

    def __len__(self) -> int:
        return len(self.objects)


class Tree(dict[Any, "Tree"]):
    """The paths of a traversal as a tree: a child for each object that follows."""

    __slots__ = ()


@dataclass(slots=True)
class Metrics:
    """The work of one step, for `profile()`."""

    id: str
    name: str
    duration_nanoseconds: int
    # Such as traverserCount and elementCount.
    counts: Mapping[str, int] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    nested: Sequence[Metrics] = ()


@dataclass(slots=True)
class TraversalMetrics:
    """The work of a whole traversal, for `profile()`."""

    duration_nanoseconds: int
    metrics: Sequence[Metrics] = ()

    def __str__(self) -> str:
        """Return the table that is shown where a client reads no types."""
        lines = ["Traversal Metrics", f"{'Step':<60} {'Count':>11} {'Traversers':>11} {'Time (ms)':>12} {'% Dur':>8}"]
        lines.append("=" * 106)
        for metrics in self.metrics:
            lines.extend(self._lines(metrics, depth=0))
        total = self.duration_nanoseconds / 1e6
        lines.append(f"{'>TOTAL':>60} {'-':>11} {'-':>11} {total:>12.3f} {'-':>8}")
        return "\n".join(lines)

    def _lines(self, metrics: Metrics, *, depth: int) -> list[str]:
        name = ("  " * depth + metrics.name)[:60]
        counts, total = metrics.counts, self.duration_nanoseconds
        share = 100 * metrics.duration_nanoseconds / total if total else 0.0
        found = [
            f"{name:<60} {counts.get('elementCount', '-'):>11} {counts.get('traverserCount', '-'):>11} "
            f"{metrics.duration_nanoseconds / 1e6:>12.3f} {share:>8.2f}"
        ]
        for nested in metrics.nested:
            found.extend(self._lines(nested, depth=depth + 1))
        return found
