"""Refusals that several checks of index specifications share."""

from __future__ import annotations

from asterism.languages.mongo.failure import MongoFailure


def cannot_create(message: str) -> MongoFailure:
    return MongoFailure(67, message)


def wrong_type(option: str, expected: str) -> MongoFailure:
    return MongoFailure(14, f"The field '{option}' must be {expected}")
