"""`changeStreamPreAndPostImages`: whether change streams may ask for documents as they were before a change."""

from __future__ import annotations

from typing import Final

from asterism.apis.mongo.arguments import BOOL, MISSING_FIELD, check_document
from asterism.apis.mongo.commands import FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

IMAGES: Final = "changeStreamPreAndPostImages"
_FIELDS: Final = {"enabled": FieldRule(BOOL, is_required=True)}


def read_images(command: str, value: Document) -> bool:
    where = f"{command}.{IMAGES}"
    check_document(where, value, _FIELDS)
    if value.get("enabled") is None:
        raise MongoFailure(MISSING_FIELD, f"BSON field '{where}.enabled' is missing but a required field")
    return bool(value["enabled"])
