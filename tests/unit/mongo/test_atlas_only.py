"""Search of Atlas: refused by name, in words that drivers look for."""

from __future__ import annotations

import pytest

from asterism.apis.mongo.table import COMMANDS
from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.atlas_only import SEARCH_NOT_ENABLED
from asterism.languages.mongo.stages.pipeline import compile_pipeline
from asterism.languages.mongo.stages.stage import PipelinePlace, Within
from asterism.values.bson.types import DatetimeMS, Timestamp


@pytest.mark.parametrize("stage", ["$search", "$searchMeta", "$vectorSearch", "$listSearchIndexes"])
def test_a_stage_of_the_hosted_search_names_atlas(stage: str) -> None:
    context = new_context(DatetimeMS(0), Timestamp(1, 1))
    with pytest.raises(MongoFailure) as refused:
        compile_pipeline([{stage: {}}], context, place=PipelinePlace("shop", "users", Within.AGGREGATE))
    assert refused.value.code == SEARCH_NOT_ENABLED
    assert "Atlas" in refused.value.message


@pytest.mark.parametrize("name", ["createSearchIndexes", "updateSearchIndex", "dropSearchIndex"])
def test_commands_for_search_indexes_are_known_and_refused(name: str) -> None:
    assert "Refused" in COMMANDS[name].help
