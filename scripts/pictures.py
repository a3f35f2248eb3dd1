"""Write the pictures in docs/pictures: the floors with the path of a request, and the life of a split.

`make pictures` runs it; a test fails while a picture differs from what it writes. Each picture has a background of its
own, so that it is readable on light and on dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "pictures"

PAPER: Final = "#fbfaf6"
INK: Final = "#1f2430"
FAINT: Final = "#5b6372"
LINE: Final = "#b9bfca"
ACCENT: Final = "#b3401c"
FONT: Final = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
# The fill of each floor, from the shared words below to the program above.
FLOOR_FILLS: Final = (
    "#e9e4d8",
    "#e3ead9",
    "#d5e6df",
    "#d3e3ec",
    "#d9dcf0",
    "#e6dbf0",
    "#f3dcdf",
    "#f6e4cf",
    "#efe9dc",
)

PICTURE_WIDTH: Final = 960
MARGIN: Final = 24


@dataclass(frozen=True, slots=True)
class Floor:
    number: int
    # Packages of `asterism/`, as the table in docs/ARCHITECTURE.md names them.
    rooms: tuple[str, ...]
    meaning: str
    # The steps of a request at this floor, if it has any.
    steps: tuple[str, ...] = ()


CLIENTS: Final = ("azure-cosmos", "azure-servicebus", "asterism (commands)")
FLOORS: Final = (
    Floor(9, ("cli", "testing"), "one file per command, throw-away servers"),
    Floor(8, ("server",), "listeners, table of doors, wiring, fleets", ("listener: bytes to a request",)),
    Floor(
        7,
        (
            "apis/nosql",
            "apis/table",
            "apis/queue",
            "apis/blob",
            "apis/mongo",
            "apis/gremlin",
            "apis/amqp",
            "apis/portal",
            "apis/admin",
        ),
        "doors: protocols as tables of routes",
        ("pipeline, route, signature", "handler: request to a call"),
    ),
    Floor(
        6,
        (
            "languages/cosmos_sql",
            "languages/odata",
            "languages/bus_sql",
            "languages/mongo",
            "languages/gremlin",
            "scripts",
            "advisor",
        ),
        "texts to conditions; sandboxes",
    ),
    Floor(5, ("reading",), "conditions, plans, pages, continuations; no language"),
    Floor(
        4,
        (
            "models/documents",
            "models/tables",
            "models/collections",
            "models/queues",
            "models/blobs",
            "models/event_logs",
            "models/messages",
        ),
        "items, entities, messages and blobs on a keyspace",
        ("model: one batch of entries",),
    ),
    Floor(
        3,
        ("keyspaces",),
        "catalog, routing, reshaping, processes",
        ("commit: sizes, ceilings", "router: partition, budget, epoch"),
    ),
    Floor(
        2,
        ("partitioning", "throughput", "access", "storage"),
        "rules without side effects; the storage contract",
        ("apply: fence, expectations",),
    ),
    Floor(1, ("values", "errors", "clock", "limits", "metrics"), "the words that all floors share"),
)
ENGINES: Final = ("memory", "LMDB", "PostgreSQL")
LAST_STEP: Final = "durable: the reply goes back up"


class Picture:
    """An SVG picture: its elements, in the order in which they are painted."""

    def __init__(self, *, height: int, title: str, description: str) -> None:
        self._height = height
        self._title = title
        self._description = description
        self._elements: list[str] = []

    def box(
        self, x: int, y: int, width: int, height: int, *, fill: str, edge: str = LINE, dashed: bool = False
    ) -> None:
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._elements.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{edge}"{dashes}/>'
        )

    def text(
        self, x: int, y: int, words: str, *, size: int = 13, color: str = INK, anchor: str = "start", bold: bool = False
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self._elements.append(
            f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>"
        )

    def lines(
        self, x: int, y: int, words: Sequence[str], *, size: int = 12, color: str = INK, anchor: str = "start"
    ) -> None:
        for number, line in enumerate(words):
            self.text(x, y + number * (size + 4), line, size=size, color=color, anchor=anchor)

    def path(self, points: Sequence[tuple[int, int]], *, color: str, arrow: bool = False) -> None:
        start, *others = (f"{x} {y}" for x, y in points)
        end = ' marker-end="url(#arrow)"' if arrow else ""
        self._elements.append(
            f'<path d="M {start} L {" L ".join(others)}" fill="none" stroke="{color}" stroke-width="2"{end}/>'
        )

    def dot(self, x: int, y: int, words: str) -> None:
        self._elements.append(f'<circle cx="{x}" cy="{y}" r="10" fill="{ACCENT}"/>')
        self.text(x, y + 4, words, size=11, color=PAPER, anchor="middle", bold=True)

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PICTURE_WIDTH} {self._height}" '
            f'width="{PICTURE_WIDTH}" height="{self._height}" role="img" aria-labelledby="title desc" '
            f'font-family="{FONT}">'
        )
        arrow = (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
            f'orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="{ACCENT}"/></marker></defs>'
        )
        paper = (
            f'<rect x="1" y="1" width="{PICTURE_WIDTH - 2}" height="{self._height - 2}" rx="10" fill="{PAPER}" '
            f'stroke="{LINE}"/>'
        )
        names = [
            f'<title id="title">{escape(self._title)}</title>',
            f'<desc id="desc">{escape(self._description)}</desc>',
        ]
        return "\n".join([head, *names, arrow, paper, *self._elements, "</svg>"]) + "\n"


# --- the floors, and a request on its way through them ----------------------------------------------------------------

FLOOR_HEIGHT: Final = 56
FLOORS_WIDTH: Final = 630
PATH_X: Final = MARGIN + FLOORS_WIDTH + 30


def architecture() -> str:
    """Return the picture of the floors: doors above, engines below, and the path of a write beside them."""
    top = 88
    engines_top = top + FLOOR_HEIGHT * len(FLOORS) + 14
    rooms = "; ".join(f"floor {floor.number}: {', '.join(floor.rooms)}" for floor in FLOORS)
    picture = Picture(
        height=engines_top + 74,
        title="The floors of Asterism and the path of a write",
        description=f"From the top: clients; {rooms}; and below the storage engines {', '.join(ENGINES)}. A module "
        f"imports its own room and lower floors. A write passes: {'; '.join(_all_steps())}.",
    )
    picture.text(MARGIN, 34, "A module imports its own room and lower floors", size=15, bold=True)
    picture.text(PATH_X - 10, 34, "The path of a write", size=15, bold=True)
    for column, client in enumerate(CLIENTS):
        x = MARGIN + column * 210
        picture.box(x, 48, 200, 28, fill=PAPER, dashed=True)
        picture.text(x + 100, 67, client, size=12, color=FAINT, anchor="middle")
    for row, floor in enumerate(FLOORS):
        _draw_floor(picture, floor, top + row * FLOOR_HEIGHT)
    picture.text(MARGIN + 12, engines_top + 30, "engines", size=12, color=FAINT)
    for column, engine in enumerate(ENGINES):
        x = MARGIN + 90 + column * 180
        picture.box(x, engines_top + 6, 168, 38, fill="#ffffff", edge=INK)
        picture.text(x + 84, engines_top + 30, engine, anchor="middle", bold=True)
    _draw_path(picture, top, engines_top + 25)
    return picture.svg()


def _draw_floor(picture: Picture, floor: Floor, y: int) -> None:
    picture.box(MARGIN, y, FLOORS_WIDTH, FLOOR_HEIGHT - 6, fill=FLOOR_FILLS[floor.number - 1])
    picture.text(MARGIN + 12, y + 31, str(floor.number), size=18, color=FAINT, bold=True)
    x = MARGIN + 40
    # The rooms of a package stand behind its name, in smaller letters.
    packages = {room.partition("/")[0] for room in floor.rooms if "/" in room}
    letter, padding, gap, size = (7, 10, 5, 11) if packages else (8, 18, 8, 12)
    for room in floor.rooms:
        package, _, name = room.rpartition("/")
        if package in packages:
            packages.discard(package)
            picture.text(x, y + 21, package, size=size, color=FAINT)
            x += letter * len(package) + gap
        width = letter * len(name) + padding
        picture.box(x, y + 6, width, 22, fill="#ffffff")
        picture.text(x + width // 2, y + 21, name, size=size, anchor="middle", bold=True)
        x += width + gap
    picture.text(MARGIN + 40, y + 43, floor.meaning, size=12, color=FAINT)


def _all_steps() -> list[str]:
    return [step for floor in FLOORS for step in floor.steps] + [LAST_STEP]


def _draw_path(picture: Picture, top: int, last_y: int) -> None:
    stops: list[tuple[int, str]] = []
    for row, floor in enumerate(FLOORS):
        middle = top + row * FLOOR_HEIGHT + FLOOR_HEIGHT // 2 - 3
        spread = 13 * (len(floor.steps) - 1)
        stops += [(middle - spread + 26 * number, step) for number, step in enumerate(floor.steps)]
    stops.append((last_y, LAST_STEP))
    picture.path([(PATH_X, 62), (PATH_X, last_y)], color=ACCENT)
    # Back to the client, beside the way down.
    right = PICTURE_WIDTH - MARGIN - 6
    picture.path([(PATH_X + 10, last_y + 24), (right, last_y + 24), (right, 62)], color=ACCENT, arrow=True)
    picture.path([(PATH_X, last_y), (PATH_X, last_y + 24), (PATH_X + 12, last_y + 24)], color=ACCENT)
    for number, (y, step) in enumerate(stops, start=1):
        picture.dot(PATH_X, y, str(number))
        picture.text(PATH_X + 18, y + 4, step, size=12)


# --- the life of a split ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    source: tuple[str, ...]
    targets: tuple[str, ...]
    catalog: tuple[str, ...]
    clients: tuple[str, ...]


PHASES: Final = (
    Phase(
        "plan",
        ("serves reads", "and writes"),
        (),
        ("records the job,", "announces it"),
        ("reads and writes", "as before"),
    ),
    Phase(
        "copy",
        ("serves; journals", "changed keys"),
        ("created sealed,", "filled page by page"),
        ("keeps the cursor", "of the copy"),
        ("reads and writes", "as before"),
    ),
    Phase(
        "catch up",
        ("serves; the journal", "is read"),
        ("get present values", "of journaled keys"),
        (),
        ("reads and writes", "as before"),
    ),
    Phase(
        "seal",
        ("sealed: refuses", "reads and writes"),
        ("get the last keys;", "LSN set; opened"),
        (),
        ("requests to this", "range wait"),
    ),
    Phase(
        "publish",
        ("listed as garbage",),
        ("serve, with the", "next epoch"),
        ("new map and end", "of job: one batch"),
        ("waiting requests", "go to a child"),
    ),
    Phase(
        "clean up",
        ("dropped in", "bounded parts"),
        ("serve reads", "and writes"),
        (),
        ("old range ids and", "tokens stay valid"),
    ),
)
LANES: Final = ("source", "targets", "catalog", "clients")
LANE_FILLS: Final = ("#f3dcdf", "#d5e6df", "#d9dcf0", "#f6e4cf")
LANE_HEIGHT: Final = 62
LANE_NAME_WIDTH: Final = 76
PHASE_WIDTH: Final = (PICTURE_WIDTH - 2 * MARGIN - LANE_NAME_WIDTH) // len(PHASES)


def split() -> str:
    """Return the picture of a split: its phases from left to right, and a lane for each participant."""
    top = 92
    picture = Picture(
        height=top + LANE_HEIGHT * len(LANES) + 56,
        title="The life of a split",
        description="Phases: " + "; ".join(map(_phase_text, PHASES)) + ".",
    )
    picture.text(MARGIN, 34, "The life of a split: one source, two targets", size=15, bold=True)
    for column, phase in enumerate(PHASES):
        x = MARGIN + LANE_NAME_WIDTH + column * PHASE_WIDTH
        picture.dot(x + 12, 68, str(column + 1))
        picture.text(x + 28, 73, phase.name, size=14, bold=True)
    for row, lane in enumerate(LANES):
        y = top + row * LANE_HEIGHT
        picture.text(MARGIN, y + 30, lane, bold=True)
        for column, phase in enumerate(PHASES):
            words = _lane_words(phase)[row]
            if words:
                x = MARGIN + LANE_NAME_WIDTH + column * PHASE_WIDTH
                is_waiting = phase.name == "seal" and lane in ("source", "clients")
                edge = ACCENT if is_waiting else LINE
                picture.box(x, y, PHASE_WIDTH - 6, LANE_HEIGHT - 8, fill=LANE_FILLS[row], edge=edge)
                picture.lines(x + 8, y + (23 if len(words) > 1 else 31), words)
    _draw_foot(picture, top + LANE_HEIGHT * len(LANES))
    return picture.svg()


def _lane_words(phase: Phase) -> tuple[tuple[str, ...], ...]:
    return phase.source, phase.targets, phase.catalog, phase.clients


def _phase_text(phase: Phase) -> str:
    parts = [f"{lane} {' '.join(words)}" for lane, words in zip(LANES, _lane_words(phase), strict=True) if words]
    return f"{phase.name} ({', '.join(parts)})"


def _draw_foot(picture: Picture, y: int) -> None:
    left = MARGIN + LANE_NAME_WIDTH
    picture.path([(left, y + 14), (PICTURE_WIDTH - MARGIN, y + 14)], color=ACCENT, arrow=True)
    words = (
        "A crash at any step: the job is found in the catalog and resumed. A merge has two sources, a move one target."
    )
    picture.text(left, y + 36, words, size=12, color=FAINT)


PICTURES: Final = {"architecture.svg": architecture, "split.svg": split}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        (FOLDER / name).write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
