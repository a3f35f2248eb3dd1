"""Stages of MongoDB's hosted search, refused in words that drivers and tools look for."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import Scope, StageRow

SEARCH_NOT_ENABLED: Final = 31082
_NAMES: Final = ("$search", "$searchMeta", "$vectorSearch", "$listSearchIndexes", "$rankFusion", "$scoreFusion")


def needs_atlas(name: str) -> MongoFailure:
    return MongoFailure(
        SEARCH_NOT_ENABLED, f"{name} needs the search of MongoDB Atlas, which this server has not. Use a text index."
    )


def _refusal(name: str) -> StageRow:
    def compile_stage(_: Any, __: Scope) -> NoReturn:
        raise needs_atlas(name)

    return StageRow(name, compile_stage)


ROWS = tuple(_refusal(name) for name in _NAMES)
