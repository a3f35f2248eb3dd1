"""All stages, by name."""

from __future__ import annotations

from typing import Final

from asterism.languages.mongo.stages import grouping, joining, paging, shaping, sorting
from asterism.languages.mongo.stages.stage import StageRow

STAGES: Final[dict[str, StageRow]] = {
    row.name: row for row in (*shaping.ROWS, *paging.ROWS, *sorting.ROWS, *grouping.ROWS, *joining.ROWS)
}
