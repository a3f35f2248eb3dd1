"""Commands for the indexes of MongoDB's hosted search, which are refused."""

from __future__ import annotations

from typing import Final

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, Target
from asterism.languages.mongo.stages.atlas_only import needs_atlas
from asterism.values.bson.types import Document

_NAMES: Final = ("createSearchIndexes", "updateSearchIndex", "dropSearchIndex")


async def _refuse(call: Call) -> Document:
    raise needs_atlas(call.command.name)


COMMANDS = tuple(
    Command(
        name,
        _refuse,
        "Refused: a search index of Atlas.",
        target=Target.COLLECTION,
        access=Access.DATABASE_ADMIN,
        ignores_unknown_fields=True,
    )
    for name in _NAMES
)
