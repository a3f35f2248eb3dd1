"""Rules of where stages may stand in a pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import PipelinePlace, Position, Stage, Within

_UPDATE_STAGES = frozenset({"$set", "$addFields", "$unset", "$project", "$replaceRoot", "$replaceWith"})


def check_rules(stages: Sequence[Stage], place: PipelinePlace) -> None:
    """Refuse stages that may not stand where they are."""
    from asterism.languages.mongo.stages.table import STAGES

    for index, stage in enumerate(stages):
        row = STAGES[stage.name]
        if place.within is Within.UPDATE and stage.name not in _UPDATE_STAGES:
            raise MongoFailure(72, f"{stage.name} is not allowed to be used within an update")
        if place.within in row.refused_in or any(around in row.refused_in for around in place.around):
            raise MongoFailure(40600, f"{stage.name} is not allowed to be used within {place.within.value}")
        if row.position is Position.FIRST and index:
            raise MongoFailure(40602, f"{stage.name} is only valid as the first stage in a pipeline")
        if row.position is Position.LAST and index != len(stages) - 1:
            raise MongoFailure(40601, f"{stage.name} can only be the final stage in the pipeline")
        if place.in_transaction and not row.in_transaction:
            raise MongoFailure(263, f"{stage.name} cannot be used in a transaction")
    is_database = place.collection is None and place.within is Within.AGGREGATE
    if is_database and stages and not STAGES[stages[0].name].is_source:
        raise MongoFailure(73, f"{{aggregate: 1}} is not valid for '{stages[0].name}'; a collection is required.")
