"""All stages, by name."""

from __future__ import annotations

from typing import Final

from asterism.languages.mongo.stages import (
    atlas_only,
    bucketing,
    change_streams,
    densifying,
    describing,
    filling,
    geo_near,
    graph,
    grouping,
    joining,
    looking_up,
    merging,
    paging,
    shaping,
    sorting,
    writing,
)
from asterism.languages.mongo.stages.stage import StageRow
from asterism.languages.mongo.stages.windows import stage as windows

_MODULES = (
    shaping,
    paging,
    sorting,
    grouping,
    bucketing,
    joining,
    looking_up,
    graph,
    geo_near,
    writing,
    merging,
    windows,
    filling,
    densifying,
    change_streams,
    describing,
    atlas_only,
)

STAGES: Final[dict[str, StageRow]] = {row.name: row for module in _MODULES for row in module.ROWS}
