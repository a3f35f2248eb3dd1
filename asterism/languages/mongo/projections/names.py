"""Paths in projections and stages: their checks, and the conflicts between them."""

from __future__ import annotations

from asterism.languages.mongo.failure import MongoFailure

# The depth of documents: a longer path leads nowhere.
PATH_COMPONENTS_MAX = 200

Parts = tuple[str, ...]


def split_checked(path: str) -> Parts:
    """Return the components of a path that a stage writes to, or refuse it."""
    if not path:
        raise MongoFailure(40352, "FieldPath cannot be constructed with empty string")
    if path.endswith("."):
        raise MongoFailure(40353, f"FieldPath must not end with a '.'. Path was '{path}'")
    parts = tuple(path.split("."))
    for part in parts:
        if not part:
            raise MongoFailure(15998, "FieldPath field names may not be empty strings")
        if part.startswith("$"):
            raise MongoFailure(16410, f"FieldPath field names may not start with '$'. Got '{part}'")
    check_depth(parts)
    return parts


def check_no_null(path: str) -> None:
    """Refuse a path with a null byte, which only a text can have: names of fields end at it."""
    if "\x00" in path:
        raise MongoFailure(9527900, "FieldPath field names may not contain embedded nulls")


def check_depth(parts: Parts) -> None:
    if len(parts) > PATH_COMPONENTS_MAX:
        raise MongoFailure(15, "FieldPath is too long")


class PathSet:
    """Paths of which none may be another or lie below another."""

    def __init__(self, *, child_after_parent: int, parent_after_child: int) -> None:
        self._leaves: set[Parts] = set()
        self._inner: set[Parts] = set()
        self._child_after_parent = child_after_parent
        self._parent_after_child = parent_after_child

    def add(self, parts: Parts) -> None:
        path = ".".join(parts)
        if parts in self._leaves or parts in self._inner:
            raise MongoFailure(self._parent_after_child, f"Path collision at {path}")
        for length in range(1, len(parts)):
            if parts[:length] in self._leaves:
                rest = ".".join(parts[length:])
                raise MongoFailure(self._child_after_parent, f"Path collision at {path} remaining portion {rest}")
            self._inner.add(parts[:length])
        self._leaves.add(parts)
