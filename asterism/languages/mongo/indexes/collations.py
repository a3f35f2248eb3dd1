"""The collation of an index in its stored form: every field present, so that two can be compared."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import to_decimal
from asterism.values.bson.types import Document

_DEFAULTS: Document = {
    "caseLevel": False,
    "caseFirst": "off",
    "strength": 3,
    "numericOrdering": False,
    "alternate": "non-ignorable",
    "maxVariable": "punct",
    "normalization": False,
    "backwards": False,
}
# The version of the collation tables that the protocol reports.
_VERSION = "57.1"


def stored_collation(specification: Document) -> Document | None:
    """Return the collation with all its fields, or None for the order of bytes."""
    if not specification:
        raise MongoFailure(2, "Collation cannot be an empty object")
    # Null stands for a field that is not given, except for the one that is required.
    specification = {name: value for name, value in specification.items() if value is not None or name == "locale"}
    collate_of(specification)
    if specification["locale"] == "simple":
        return None
    given = {name: value for name, value in specification.items() if name in _DEFAULTS}
    if "strength" in given and is_number(given["strength"]):
        given["strength"] = int(to_decimal(given["strength"]))
    return {"locale": specification["locale"], **_DEFAULTS, **given, "version": _VERSION}


def collate_of(specification: Document | None) -> Any:
    """Return the sort keys of text under a collation, None for the order of bytes."""
    if specification is None:
        return None
    from asterism.values.bson.collation import CollationProblem, make_collation

    try:
        return make_collation({name: value for name, value in specification.items() if name != "version"}).key
    except CollationProblem as problem:
        raise MongoFailure(problem.code, str(problem)) from problem
