"""Traversers: a value on its way through a traversal, with everything that it carries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NO_LABELS: frozenset[str] = frozenset()


class PathNode:
    """The last place of a path and the way to it; shared by all traversers that came along there."""

    __slots__ = ("labels", "parent", "value")

    def __init__(self, parent: PathNode | None, value: Any, labels: frozenset[str] = NO_LABELS) -> None:
        self.parent = parent
        self.value = value
        self.labels = labels

    def places(self) -> list[PathNode]:
        """Return the places from the first to the last, without the root."""
        found: list[PathNode] = []
        node = self
        while node.parent is not None:
            found.append(node)
            node = node.parent
        found.reverse()
        return found


class LabelNode(PathNode):
    """A place of a sparse path, which has only places with labels: enough for `select`, and equal traversers on
    different ways can still be merged."""

    __slots__ = ()


# The path before the first step. A traverser whose path is None has none because no step of its traversal asks for it.
ROOT = PathNode(None, None)
SPARSE_ROOT = LabelNode(None, None)


class Loop:
    """A traverser's count of rounds in a `repeat`, and those of the repeats around it."""

    __slots__ = ("count", "name", "outer")

    def __init__(self, name: str | None, count: int, outer: Loop | None) -> None:
        self.name = name
        self.count = count
        self.outer = outer

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Loop)
            and self.count == other.count
            and self.name == other.name
            and self.outer == other.outer
        )

    def __hash__(self) -> int:
        return hash((self.count, self.name))


class Traverser:
    """A value, the number of equal traversers that it stands for, and what later steps may ask of it.

    `origin` is the place of the parent that a child traversal was started for: steps that keep state, such as `count`
    or `limit`, keep it for each origin apart, so that a child runs over many parents at once.
    """

    __slots__ = ("bulk", "loop", "origin", "path", "sack", "value")

    def __init__(
        self,
        value: Any,
        bulk: int = 1,
        path: PathNode | None = None,
        loop: Loop | None = None,
        sack: Any = None,
        origin: int = 0,
    ) -> None:
        self.value = value
        self.bulk = bulk
        self.path = path
        self.loop = loop
        self.sack = sack
        self.origin = origin

    def to(self, value: Any) -> Traverser:
        """Return the traverser that this one becomes in a step that maps its value: the path grows."""
        path = self.path
        if path is not None and type(path) is PathNode:
            path = PathNode(path, value)
        return Traverser(value, self.bulk, path, self.loop, self.sack, self.origin)

    def copy(self) -> Traverser:
        """Return another traverser at the same place, for a branch or a child."""
        return Traverser(self.value, self.bulk, self.path, self.loop, self.sack, self.origin)

    def with_value(self, value: Any) -> Traverser:
        """Return a traverser with a newer version of its value, at the same place of the path."""
        path = self.path
        # The last place of a sparse path may be one that the traverser has left.
        if path is not None and (type(path) is PathNode or path.value is self.value):
            path = type(path)(path.parent, value, path.labels)
        return Traverser(value, self.bulk, path, self.loop, self.sack, self.origin)

    def labelled(self, labels: Iterable[str]) -> Traverser:
        """Return the traverser with labels on the last place of its path."""
        path = self.path
        if path is None:
            return self
        if type(path) is LabelNode and (path.parent is None or path.value is not self.value):
            labelled: PathNode = LabelNode(path, self.value, frozenset(labels))
        else:
            labelled = type(path)(path.parent, path.value, path.labels.union(labels))
        return Traverser(self.value, self.bulk, labelled, self.loop, self.sack, self.origin)

    def __repr__(self) -> str:
        return f"{self.value!r}x{self.bulk}"


Batch = list[Traverser]
