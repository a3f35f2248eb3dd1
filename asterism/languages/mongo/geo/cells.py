"""Cells of a grid over a plane of two coordinates, for indexes of places.

A cell is a rectangle: of level 0 it is everything, and each level halves both sides. Its name has a digit for each
level, so that the names of all cells within a cell begin with its own. A point has the name of its finest cell; other
geometries have those of a few cells that cover them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from asterism.languages.mongo.geo.boxes import Box

# About two meters at the equator.
LEVEL_MAX: Final = 24
SHAPE_CELLS_MAX: Final = 12
QUERY_CELLS_MAX: Final = 20


class Grid(NamedTuple):
    whole: Box

    def name_of_point(self, x: float, y: float) -> str:
        """Return the finest cell of a point, which must lie in the grid."""
        west, south, east, north = self.whole
        digits = []
        for _ in range(LEVEL_MAX):
            middle_x, middle_y = (west + east) / 2, (south + north) / 2
            right, upper = x >= middle_x, y >= middle_y
            digits.append("0123"[2 * upper + right])
            west, east = (middle_x, east) if right else (west, middle_x)
            south, north = (middle_y, north) if upper else (south, middle_y)
        return "".join(digits)

    def cover(self, boxes: Sequence[Box] | None, cells_max: int) -> list[str]:
        """Return the names of cells that hold every point of the boxes: the largest ones are divided first."""
        if boxes is None:
            return [""]
        wanted = [box for box in boxes if box.meets(self.whole)]
        if not wanted:
            return []
        # Cells that can be divided, by level.
        open_cells: list[tuple[int, str, Box]] = [(0, "", self.whole)]
        closed: list[str] = []
        while open_cells and len(open_cells) + len(closed) < cells_max:
            level, name, cell = heapq.heappop(open_cells)
            if level == LEVEL_MAX or any(box.holds(cell) for box in wanted):
                closed.append(name)
                continue
            for digit, part in enumerate(_quarters(cell)):
                if any(box.meets(part) for box in wanted):
                    heapq.heappush(open_cells, (level + 1, f"{name}{digit}", part))
        return sorted([*closed, *(name for _, name, _ in open_cells)])


def _quarters(cell: Box) -> Iterable[Box]:
    west, south, east, north = cell
    x, y = (west + east) / 2, (south + north) / 2
    yield Box(west, south, x, y)
    yield Box(x, south, east, y)
    yield Box(west, y, x, north)
    yield Box(x, y, east, north)


SPHERE_GRID: Final = Grid(Box(-180.0, -90.0, 180.0, 90.0))


def ancestors(names: Iterable[str]) -> list[str]:
    """Return the cells around cells, whose entries may reach into them."""
    return sorted({name[:length] for name in names for length in range(len(name))})
