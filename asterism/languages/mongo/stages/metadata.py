"""Metadata of documents in a pipeline: what `$meta` reads, such as the score of a text search or a distance.

A document carries it in a field whose name no client can write, from the search to the last stage that reads it.
Pipelines without `$meta` have none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from asterism.languages.mongo.expressions.misc import METADATA_FIELD
from asterism.languages.mongo.expressions.operator import Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import Batches, RunContext, Stage, Transform
from asterism.values.bson.types import Document

_OF_TEXT: Final = frozenset({"textScore"})
_OF_NEAR: Final = frozenset({"geoNearDistance", "geoNearPoint"})
_SEARCHED: Final = _OF_TEXT | _OF_NEAR
# Stages that make one document of each.
_CARRIERS: Final = frozenset({"$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith"})
# Stages behind which documents are others than before.
_BARRIERS: Final = frozenset({"$group", "$bucket", "$bucketAuto", "$sortByCount", "$count", "$facet"})


def metadata_names(specification: Any) -> set[str]:
    """Return the metadata that a specification reads."""
    if type(specification) is list:
        return {name for element in specification for name in metadata_names(element)}
    if type(specification) is not dict:
        return set()
    found: set[str] = set()
    for name, value in specification.items():
        if name == "$meta" and type(value) is str:
            found.add(value)
        elif name != "$literal":
            found |= metadata_names(value)
    return found


def check_available(names: set[str], *, has_text: bool, has_near: bool) -> None:
    """Refuse metadata that no search gives."""
    available = (_OF_TEXT if has_text else frozenset()) | (_OF_NEAR if has_near else frozenset())
    for name in sorted(names & _SEARCHED):
        if name not in available:
            raise MongoFailure(40218, f"query requires {name} metadata, but it is not available")


def bind_metadata(stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages so that documents keep their metadata up to the last stage that reads it, and no further."""
    read_by = [metadata_names(stage.specification) if stage.name != "$match" else set() for stage in stages]
    # The stage that always gives metadata, and those that read it.
    users = [index for index, stage in enumerate(stages) if read_by[index] or stage.name == "$geoNear"]
    if not users:
        return list(stages)
    _check(stages, read_by)
    bound = list(stages)
    for index, stage in enumerate(stages[: users[-1]]):
        if stage.transform is not None and stage.name in _CARRIERS:
            bound[index] = replace(stage, transform=_carrying(stage.transform))
    bound[users[-1]] = _stripping(stages[users[-1]])
    return bound


def metadata_of_stages(stages: Sequence[Stage]) -> set[str]:
    """Return the metadata that stages read of the documents that the source gives them."""
    return {name for stage in stages for name in metadata_names(stage.specification)}


def _check(stages: Sequence[Stage], read_by: Sequence[set[str]]) -> None:
    has_text = bool(stages) and stages[0].name == "$match" and "$text" in _top_names(stages[0].specification)
    has_near = any(stage.name == "$geoNear" for stage in stages)
    for stage, names in zip(stages, read_by, strict=True):
        check_available(names, has_text=has_text, has_near=has_near)
        if stage.name in _BARRIERS:
            has_text = has_near = False


def _top_names(filter: Any) -> set[str]:
    """Return the operators at the top of a filter and of the conjunctions in it."""
    found: set[str] = set()
    for name, value in filter.items() if type(filter) is dict else ():
        found.add(name)
        if name in ("$and", "$or") and type(value) is list:
            for part in value:
                found |= _top_names(part)
    return found


def _carrying(transform: Transform) -> Transform:
    def carry(documents: list[Document], variables: Variables) -> list[Document]:
        results = transform(documents, variables)
        return [
            {**result, METADATA_FIELD: document[METADATA_FIELD]} if METADATA_FIELD in document else result
            for document, result in zip(documents, results, strict=True)
        ]

    return carry


def _stripping(stage: Stage) -> Stage:
    """Return the stage without the metadata in its output."""
    transform, run = stage.transform, stage.run
    if transform is not None:
        return replace(stage, transform=lambda documents, variables: _without_metadata(transform(documents, variables)))
    assert run is not None, "a stage has one of both"

    async def run_and_strip(source: Batches, run_context: RunContext) -> Batches:
        async for batch in run(source, run_context):
            yield _without_metadata(batch)

    return replace(stage, run=run_and_strip)


def _without_metadata(documents: list[Document]) -> list[Document]:
    for document in documents:
        document.pop(METADATA_FIELD, None)
    return documents
