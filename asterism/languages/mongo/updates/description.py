"""The difference of two documents in the form that change events have: `updateDescription`."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.updates.identity import identical
from asterism.values.bson.types import Document


def describe_change(before: Document, after: Document) -> Document:
    """Return the fields that were set and removed, and the arrays that became shorter, by dotted paths."""
    updated: Document = {}
    removed: list[str] = []
    truncated: list[Document] = []
    _compare_documents((), before, after, updated, removed, truncated)
    description: Document = {"updatedFields": updated, "removedFields": removed, "truncatedArrays": truncated}
    return description


def _compare_documents(
    path: tuple[str, ...],
    before: Document,
    after: Document,
    updated: Document,
    removed: list[str],
    truncated: list[Document],
) -> None:
    removed.extend(".".join((*path, name)) for name in before if name not in after)
    for name, new in after.items():
        inner = (*path, name)
        if name not in before:
            updated[".".join(inner)] = new
        else:
            _compare_values(inner, before[name], new, updated, removed, truncated)


def _compare_values(
    path: tuple[str, ...],
    old: Any,
    new: Any,
    updated: Document,
    removed: list[str],
    truncated: list[Document],
) -> None:
    if identical(old, new):
        return
    if type(old) is dict and type(new) is dict and _keeps_order(old, new):
        _compare_documents(path, old, new, updated, removed, truncated)
    elif type(old) is list and type(new) is list:
        if len(new) < len(old):
            truncated.append({"field": ".".join(path), "newSize": len(new)})
        for index, element in enumerate(new):
            inner = (*path, str(index))
            if index >= len(old):
                updated[".".join(inner)] = element
            else:
                _compare_values(inner, old[index], element, updated, removed, truncated)
    else:
        updated[".".join(path)] = new


def _keeps_order(old: Document, new: Document) -> bool:
    """Return whether the common fields stand in the same order and new ones behind them, as single fields set would."""
    common = [name for name in old if name in new]
    return list(new)[: len(common)] == common
