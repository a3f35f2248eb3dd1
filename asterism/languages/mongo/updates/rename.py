"""$rename: moves the value of one field to another; neither may be inside an array."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.updates.nesting import check_nesting, nesting
from asterism.languages.mongo.updates.operator import ApplyState
from asterism.languages.mongo.updates.paths import Parts, element_index, is_positional, parse_path
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING, Document

NULL_BYTE_IN_PATH = 9867600


class RenamePaths:
    """The change at the target of a $rename. `source` is removed after all changes are made."""

    __slots__ = ("source", "target")

    def __init__(self, source: str, target: Any) -> None:
        if type(target) is not str:
            raise MongoFailure(2, f"The 'to' field for $rename must be a string: {source}, not {type_name(target)}")
        if "\x00" in target:
            raise MongoFailure(NULL_BYTE_IN_PATH, "The 'to' field for $rename cannot contain an embedded null byte")
        self.source, self.target = parse_path(source), parse_path(target)
        for side, parts in (("source", self.source), ("destination", self.target)):
            if any(is_positional(part) for part in parts):
                raise MongoFailure(2, f"The {side} field for $rename may not be dynamic: {'.'.join(parts)}")
        shorter = min(len(self.source), len(self.target))
        if self.source[:shorter] == self.target[:shorter]:
            raise MongoFailure(2, f"The source and target field for $rename must not be on the same path: {source}")

    def __call__(self, old: Any, state: ApplyState) -> Any:
        value = self.find_source(state.document)
        if value is MISSING:
            return old
        if _enters_array(state.document, self.target):
            raise MongoFailure(2, f"The destination field cannot be an array element: {'.'.join(self.target)}")
        if "_id" in (self.source[0], self.target[0]):
            raise MongoFailure(66, "Performing an update on the path '_id' would modify the immutable field '_id'")
        check_nesting(len(self.target) + nesting(value))
        state.removals.append(self.source)
        return value

    def find_source(self, document: Document) -> Any:
        """Return the value of the source, or MISSING."""
        value: Any = document
        for part in self.source:
            index = element_index(part)
            if type(value) is dict:
                value = value.get(part, MISSING)
            elif type(value) is list and index is not None:
                value = value[index] if index < len(value) else MISSING
            else:
                raise MongoFailure(
                    28, f"cannot use the part ({part} of {'.'.join(self.source)}) to traverse the element"
                )
            if value is MISSING:
                return MISSING
        if _enters_array(document, self.source):
            raise MongoFailure(2, f"The source field cannot be an array element: {'.'.join(self.source)}")
        return value


def _enters_array(document: Document, parts: Parts) -> bool:
    value: Any = document
    for part in parts:
        if type(value) is list:
            return True
        if type(value) is not dict:
            return False
        value = value.get(part)
    return False


def without_path(document: Document, parts: Parts) -> Document:
    """Return a copy of a document without the field; only documents on the way are copied."""
    copy = dict(document)
    if len(parts) == 1:
        del copy[parts[0]]
    else:
        copy[parts[0]] = without_path(copy[parts[0]], parts[1:])
    return copy
