"""`storageEngine`: options that MongoDB hands to its engine. They are checked and shown, and change nothing here."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import OBJECT, check_document
from asterism.apis.mongo.commands import FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

_ENGINES: Final = frozenset({"wiredTiger", "inMemory", "asterism"})
_ENGINE_FIELDS: Final = frozenset({"configString"})
_DEFAULTS_FIELDS: Final = {"storageEngine": FieldRule(OBJECT)}
# Settings that a text of configuration may have, as far as clients are known to send them.
_SETTINGS: Final = frozenset(
    {"block_compressor", "prefix_compression", "leaf_page_max", "internal_page_max", "access_pattern_hint",
     "memory_page_max", "split_pct", "checksum", "allocation_size", "type", "app_metadata", "log", "cache_resident"}
)  # fmt: skip


def check_storage_engine(value: Document) -> None:
    for engine, options in value.items():
        if engine not in _ENGINES:
            raise MongoFailure(72, f"{engine} is not a registered storage engine for this server")
        if not isinstance(options, dict):
            raise MongoFailure(2, f"'storageEngine.{engine}' has to be an embedded document.")
        for name, option in options.items():
            if name not in _ENGINE_FIELDS:
                raise MongoFailure(72, f"'{name}' is not a supported option in storageEngine.{engine}")
            _check_text(option)


def _check_text(value: Any) -> None:
    if type(value) is not str:
        raise MongoFailure(14, "'configString' must be a string")
    if "\0" in value:
        raise MongoFailure(9, "'configString' cannot contain null bytes")
    for part in filter(None, (part.strip() for part in value.split(","))):
        if part.partition("=")[0] not in _SETTINGS:
            raise MongoFailure(2, f"Unknown setting '{part}' in 'configString'")


def check_index_defaults(value: Document) -> None:
    """Check `indexOptionDefaults`."""
    check_document("create.indexOptionDefaults", value, _DEFAULTS_FIELDS)
    if value.get("storageEngine") is not None:
        check_storage_engine(value["storageEngine"])
