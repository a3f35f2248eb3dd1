"""Rules of where stages may stand in a pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.change_streams import check_following
from asterism.languages.mongo.stages.stage import PipelinePlace, Position, Stage, StageRow, Within

_UPDATE_STAGES = frozenset({"$set", "$addFields", "$unset", "$project", "$replaceRoot", "$replaceWith"})

# The refusal of a stage by the construct around its pipeline.
_CODES = {Within.LOOKUP: 51047, Within.UNION: 31441, Within.FACET: 40600, Within.VIEW: 167}


def _refused_around(row: StageRow, place: PipelinePlace) -> Within | None:
    return next((within for within in reversed(place.around) if within in row.refused_in), None)


def check_rules(stages: Sequence[Stage], place: PipelinePlace) -> None:
    """Refuse stages that may not stand where they are."""
    from asterism.languages.mongo.stages.table import STAGES

    for index, stage in enumerate(stages):
        row = STAGES[stage.name]
        # $fill with constant values is an $addFields.
        is_update = stage.name in _UPDATE_STAGES or (stage.name == "$fill" and stage.transform is not None)
        if place.within is Within.UPDATE and not is_update:
            raise MongoFailure(72, f"{stage.name} is not allowed to be used within an update")
        refused = place.within if place.within in row.refused_in else _refused_around(row, place)
        if refused is not None:
            raise MongoFailure(_CODES.get(refused, 40600), f"{stage.name} is not allowed within {refused.value}")
        if stage.name == "$geoNear" and any(before.specification != {} for before in stages[:index]):
            raise MongoFailure(40603, "$geoNear was not the first stage in the pipeline.")
        if row.position is Position.FIRST and index:
            raise MongoFailure(40602, f"{stage.name} is only valid as the first stage in a pipeline")
        if row.position is Position.LAST and index != len(stages) - 1:
            raise MongoFailure(40601, f"{stage.name} can only be the final stage in the pipeline")
        if place.in_transaction and not row.in_transaction:
            raise MongoFailure(263, f"{stage.name} cannot be used in a transaction")
    check_following(stages)
    is_database = place.collection is None and place.within is Within.AGGREGATE
    if is_database and stages and not STAGES[stages[0].name].is_source:
        raise MongoFailure(73, f"{{aggregate: 1}} is not valid for '{stages[0].name}'; a collection is required.")
