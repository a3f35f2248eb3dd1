"""Write the picture of docs/guides/blobs.md: the load on the ranges of a container by the names of its blobs.

`make pictures` draws it from the figures in docs/guides/blobs-figures.json. `make pictures ARGS=--measure` first
uploads blobs under both kinds of names to a server of its own, at the same rate, and writes the figures anew.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from asterism.testing import Server
from scripts.pattern_pictures import BAD_FILL, GOOD_FILL
from scripts.pictures import ACCENT, FAINT, FOLDER, INK, MARGIN, PICTURE_WIDTH, Picture

PROJECT: Final = Path(__file__).resolve().parents[1]
EXAMPLE: Final = PROJECT / "examples" / "blobs" / "hash_prefix.py"
FIGURES: Final = PROJECT / "docs" / "guides" / "blobs-figures.json"
PICTURE_NAME: Final = "blobs-names.svg"

# Blobs that are there before the ranges are divided, and those that are uploaded while the load is measured.
EARLIER: Final = 200
UPLOADED: Final = 280
UPLOADS_PER_SECOND: Final = 20
BLOB_BYTES: Final = 1000
# Between the load of one range of four under names with a prefix, and that of the whole container.
HOT_RU_PER_SECOND: Final = 100
DIVISIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Panel:
    container: str
    caption: str
    remark: str


PANELS: Final = (
    Panel("by-time", "2026-11-19/08-30-00.jpg", "names that begin with a time stamp: all uploads in the last range"),
    Panel("spread", "107-2026-11-19/08-30-00.jpg", "three digits of a hash in front: uploads in every range"),
)

# --- drawing ----------------------------------------------------------------------------------------------------------

Figures = Mapping[str, Sequence[Mapping[str, Any]]]
HEADING: Final = f"{UPLOADED} uploads, {UPLOADS_PER_SECOND} a second, to containers of four ranges"
PANELS_TOP: Final = 62
HEAD_HEIGHT: Final = 52
ROW_HEIGHT: Final = 48
BAR_HEIGHT: Final = 20
FIGURES_WIDTH: Final = 190
_KEY_CHARACTERS_MAX: Final = 20


def read_figures() -> Figures:
    return dict(json.loads(FIGURES.read_text(encoding="utf-8")))


def draw(figures: Figures) -> str:
    largest = max(each["request_units"] for ranges in figures.values() for each in ranges)
    picture = Picture(
        height=PANELS_TOP + HEAD_HEIGHT + ROW_HEIGHT * max(map(len, figures.values())) + 12,
        title=HEADING,
        description="; ".join(
            f"{panel.caption}: {', '.join(_words_of(each) for each in figures[panel.container])}" for panel in PANELS
        ),
    )
    picture.text(MARGIN, 34, HEADING, size=15, bold=True)
    width = (PICTURE_WIDTH - MARGIN) // len(PANELS)
    for column, panel in enumerate(PANELS):
        x = MARGIN + column * width
        picture.text(x, PANELS_TOP + 14, panel.caption, size=14, bold=True)
        picture.text(x, PANELS_TOP + 33, panel.remark, size=12, color=FAINT)
        for row, each in enumerate(figures[panel.container]):
            y = PANELS_TOP + HEAD_HEIGHT + row * ROW_HEIGHT
            length = round((width - MARGIN - FIGURES_WIDTH) * each["request_units"] / largest)
            _draw_range(picture, each, length=length, x=x, y=y)
    return picture.svg()


def _draw_range(picture: Picture, measured: Mapping[str, Any], *, length: int, x: int, y: int) -> None:
    start = measured["start_key"]
    picture.text(x, y + 11, "from the start" if start is None else f"from {_shortened(start)}", size=12, color=FAINT)
    if length > 0:
        fill = BAD_FILL if measured["hot"] else GOOD_FILL
        picture.box(x, y + 16, length, BAR_HEIGHT, fill=fill)
    color = ACCENT if measured["hot"] else INK
    picture.text(x + length + 8, y + 31, _words_of(measured), size=12, color=color, bold=measured["hot"])


def _words_of(measured: Mapping[str, Any]) -> str:
    amount = f"{measured['request_units']:,.0f} RU"
    drift = "" if measured["drift"] == "none" else f", keys {measured['drift']}"
    return f"{amount}{', HOT' if measured['hot'] else ''}{drift}"


def _shortened(key: str) -> str:
    return key if len(key) <= _KEY_CHARACTERS_MAX else f"{key[:_KEY_CHARACTERS_MAX]}…"


PICTURES: Final[Mapping[str, Callable[[], str]]] = {PICTURE_NAME: lambda: draw(read_figures())}

# --- measuring --------------------------------------------------------------------------------------------------------


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure() -> Figures:
    """Upload the same blobs under both kinds of names; return the ranges with their load."""
    example = load_example()
    with (
        Server(apis="nosql,blob", limit=[f"ordered-range-ru-per-second={HOT_RU_PER_SECOND}"]) as server,
        server.blob_service_client() as service,
    ):
        containers = [service.create_container(panel.container) for panel in PANELS]

        def upload(number: int) -> None:
            name = example.name_of(example.FIRST + timedelta(minutes=number))
            for container, chosen in zip(containers, (name, example.with_prefix(name)), strict=True):
                container.upload_blob(chosen, bytes(BLOB_BYTES))

        for number in range(EARLIER):
            upload(number)
        for panel in PANELS:
            for _ in range(DIVISIONS):
                server.split(blob=panel.container)
        begun_at = time.monotonic()
        for number in range(UPLOADED):
            time.sleep(max(0.0, begun_at + number / UPLOADS_PER_SECOND - time.monotonic()))
            upload(EARLIER + number)
        return {panel.container: [_shown(each) for each in server.partitions(blob=panel.container)] for panel in PANELS}


def _shown(partition: Mapping[str, Any]) -> dict[str, Any]:
    names = ("start_key", "items", "hot", "drift")
    return {name: partition[name] for name in names} | {"request_units": partition["ru_consumed"]}


def text_of(figures: Figures) -> str:
    """Write figures as JSON with a line for each range, so that changes are seen."""
    containers = [
        f"{json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(each)}" for each in ranges) + "\n]"
        for name, ranges in figures.items()
    ]
    return "{\n" + ",\n".join(containers) + "\n}\n"


def main() -> None:
    if "--measure" in sys.argv[1:]:
        FIGURES.write_text(text_of(measure()), encoding="utf-8")
    for name, picture in PICTURES.items():
        (FOLDER / name).write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
