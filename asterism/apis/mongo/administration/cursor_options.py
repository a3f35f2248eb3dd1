"""The parts that commands with lists as answers share: the filter, the size of the first batch, and the cursor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from asterism.apis.mongo.arguments import NUMBER, as_int, check_document
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import FieldRule
from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.values.bson.types import Document

_CURSOR_FIELDS: Final = {"batchSize": FieldRule(NUMBER)}


def matcher(call: Call) -> Callable[[Document], bool]:
    """Return the condition of the field `filter`."""
    return matcher_of(call, call.get("filter"))


def matcher_of(call: Call, wanted: Document | None) -> Callable[[Document], bool]:
    if not wanted:
        return lambda _: True
    match = compile_filter(wanted, new_context(call.now, call.cluster_time))
    if match.text is not None:
        raise MongoFailure(2, "$text is not allowed in this context: there is no text index to search")
    return match.matches


def batch_size_of(call: Call) -> int | None:
    """Return the size of the first batch; None if the client leaves it to the server."""
    cursor: Any = call.get("cursor", {})
    check_document("cursor", cursor, _CURSOR_FIELDS)
    size = cursor.get("batchSize")
    if size is None:
        return None
    if as_int(size) < 0:
        raise MongoFailure(2, f"BSON field 'cursor.batchSize' value must be >= 0, actual value '{as_int(size)}'")
    return as_int(size)


async def slices_of(documents: list[Document]) -> AsyncIterator[list[bytes | Document]]:
    yield list(documents)
