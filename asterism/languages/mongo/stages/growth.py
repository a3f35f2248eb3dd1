"""A bound for documents that a pipeline multiplies.

An expression such as `["$a", "$a"]` holds one value twice and takes no memory for it; after some stages of that kind a
document of a few bytes would take gigabytes when it is encoded. Pipelines that could do so have their documents
measured; others are not touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from asterism.languages.mongo.expressions.operator import Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import Stage, Transform
from asterism.values.bson.types import Document

# Documents between stages may be larger than stored ones, as in the reference server.
_DOCUMENT_BYTES_MAX: Final = 64 * 1024 * 1024
# Of 16 MB each that is half a gigabyte, once.
_COPIES_MAX: Final = 32
# More than a small element takes when it is encoded, as Python needs for it: two million are the limit, and counting
# them takes a quarter of a second.
_ELEMENT_BYTES: Final = 32
_SHAPING: Final = frozenset({"$project", "$set", "$addFields", "$replaceRoot", "$replaceWith"})
# They evaluate an expression again and again, and may hold the same value each time.
_REPEATING: Final = frozenset({"$map", "$reduce"})


def bound_growth(stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages; those that multiply values measure their documents if all together may go too far."""
    copies = 1
    for stage in stages:
        if stage.name in _SHAPING:
            copies *= _copies(stage.specification)
    if copies <= _COPIES_MAX:
        return list(stages)
    return [_measured(stage) if stage.name in _SHAPING else stage for stage in stages]


def _copies(specification: Any) -> int:
    """Return how often the result of a stage may contain the same value."""
    counts = Counter(_references(specification))
    return max(counts.values(), default=1)


def _references(value: Any) -> Iterator[str]:
    """Yield the field or the variable of every path in an expression."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            if found.startswith("$"):
                yield found.partition(".")[0]
        elif isinstance(found, list):
            waiting += found
        elif isinstance(found, dict):
            waiting += found.values()
            if not _REPEATING.isdisjoint(found):
                yield from ("$map",) * (_COPIES_MAX + 1)


def _measured(stage: Stage) -> Stage:
    transform = stage.transform
    assert transform is not None, "a stage that shapes documents handles each batch alone"
    return replace(stage, transform=_measuring(transform))


def _measuring(transform: Transform) -> Transform:
    def measured(documents: list[Document], variables: Variables) -> list[Document]:
        made = transform(documents, variables)
        for document in made:
            _check(document)
        return made

    return measured


def _check(document: Document) -> None:
    """Add up the size of a document, and stop where it is too large: a value counts wherever it stands."""
    left = _DOCUMENT_BYTES_MAX
    waiting: list[Any] = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, (str, bytes)):
            left -= len(value)
        left -= _ELEMENT_BYTES
        if left < 0:
            raise MongoFailure(10334, "A document of the pipeline is larger than 64 MB.")
