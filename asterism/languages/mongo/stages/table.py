"""All stages, by name."""

from __future__ import annotations

from typing import Final

from asterism.languages.mongo.stages import (
    bucketing,
    change_streams,
    geo_near,
    grouping,
    joining,
    merging,
    paging,
    shaping,
    sorting,
    writing,
)
from asterism.languages.mongo.stages.stage import StageRow

_MODULES = (shaping, paging, sorting, grouping, bucketing, joining, writing, merging, geo_near, change_streams)

STAGES: Final[dict[str, StageRow]] = {row.name: row for module in _MODULES for row in module.ROWS}
