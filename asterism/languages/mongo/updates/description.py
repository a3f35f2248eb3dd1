"""The `updateDescription` of a change event: what an update has changed, by paths."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.updates.identity import identical
from asterism.values.bson.types import Document

# Names of fields and, of arrays, positions.
Path = tuple[str | int, ...]


def describe_change(before: Document, after: Document) -> Document:
    """Return the fields that were set and removed, and the arrays that became shorter, by dotted paths. Paths that can
    be read in several ways are given in parts, too (`disambiguatedPaths`)."""
    comparison = _Comparison()
    comparison.compare_documents((), before, after)
    description: Document = {
        "updatedFields": comparison.updated,
        "removedFields": comparison.removed,
        "truncatedArrays": comparison.truncated,
    }
    if comparison.ambiguous:
        description["disambiguatedPaths"] = comparison.ambiguous
    return description


class _Comparison:
    __slots__ = ("ambiguous", "removed", "truncated", "updated")

    def __init__(self) -> None:
        self.updated: Document = {}
        self.removed: list[str] = []
        self.truncated: list[Document] = []
        self.ambiguous: Document = {}

    def compare_documents(self, path: Path, before: Document, after: Document) -> None:
        self.removed.extend(self._text((*path, name)) for name in before if name not in after)
        for name, new in after.items():
            inner = (*path, name)
            if name not in before:
                self.updated[self._text(inner)] = new
            else:
                self._compare_values(inner, before[name], new)

    def _compare_values(self, path: Path, old: Any, new: Any) -> None:
        if identical(old, new):
            return
        if type(old) is dict and type(new) is dict and _keeps_order(old, new):
            self.compare_documents(path, old, new)
        elif type(old) is list and type(new) is list:
            if len(new) < len(old):
                self.truncated.append({"field": self._text(path), "newSize": len(new)})
            for index, element in enumerate(new):
                inner = (*path, index)
                if index >= len(old):
                    self.updated[self._text(inner)] = element
                else:
                    self._compare_values(inner, old[index], element)
        else:
            self.updated[self._text(path)] = new

    def _text(self, path: Path) -> str:
        text = ".".join(map(str, path))
        # A name of digits looks like a position, one with a dot like two names.
        if any(type(part) is str and (part.isdigit() or "." in part) for part in path):
            self.ambiguous[text] = list(path)
        return text


def _keeps_order(old: Document, new: Document) -> bool:
    """Return whether the common fields stand in the same order and new ones behind them, as single fields set would."""
    common = [name for name in old if name in new]
    return list(new)[: len(common)] == common
