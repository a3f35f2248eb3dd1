"""The collation of an index in its stored form: every field present, so that two can be compared."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.collation import Collation, CollationProblem, make_collation
from asterism.values.bson.types import Document


def stored_collation(specification: Document) -> Document | None:
    """Return the collation with all its fields, or None for the order of bytes."""
    if not specification:
        raise MongoFailure(2, "Collation cannot be an empty object")
    collation = _make(specification)
    return None if collation.key is None else collation.specification


def collate_of(specification: Document | None) -> Any:
    """Return the sort keys of text under a collation, None for the order of bytes."""
    return None if specification is None else _make(specification).key


def _make(specification: Document) -> Collation:
    try:
        return make_collation(specification)
    except CollationProblem as problem:
        raise MongoFailure(problem.code, str(problem)) from problem
