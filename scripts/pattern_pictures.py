"""Write the pictures of docs/guides/patterns: the partitions of each example, under a bad key and under a good one.

`make pictures` draws them from the figures in docs/guides/patterns/figures.json, and a test fails while a picture is
another than this script draws. `make pictures ARGS=--measure` first runs the examples against a server of its own, and
writes the figures anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from asterism.testing import Server
from scripts.pictures import ACCENT, FAINT, FOLDER, INK, MARGIN, PICTURE_WIDTH, Picture

PROJECT: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = PROJECT / "examples" / "patterns"
GUIDES: Final = PROJECT / "docs" / "guides" / "patterns"
FIGURES: Final = GUIDES / "figures.json"
EXAMPLE_SECONDS_MAX: Final = 120.0


@dataclass(frozen=True, slots=True)
class Panel:
    # As the example calls its picture.
    title: str
    caption: str
    remark: str
    is_good: bool = True


@dataclass(frozen=True, slots=True)
class Pattern:
    example: str
    heading: str
    # The property of a partition that the bars show.
    by: str
    panels: tuple[Panel, ...]

    @property
    def picture_name(self) -> str:
        return f"pattern-{self.example.replace('_', '-')}.svg"


_WRITES = "20 writes at once, 400 RU/s in each container"

PATTERNS: Final = (
    Pattern(
        "user_profiles",
        f"Visits of users: {_WRITES}",
        "request_units",
        (
            Panel("by-country", "/country", "most users share a partition", is_good=False),
            Panel("by-user", "/userId", "every user is a logical partition"),
        ),
    ),
    Pattern(
        "device_telemetry",
        f"Readings of 24 devices: {_WRITES}",
        "request_units",
        (
            Panel("by-date", "/date", "all of today in one partition", is_good=False),
            Panel("by-device", "/deviceId", "a device is a logical partition"),
            Panel("by-device-and-day", "deviceId-date", "a day of a device is one"),
        ),
    ),
    Pattern(
        "time_series_by_date",
        "Ten reports of a day",
        "request_units",
        (
            Panel("by-id, 10 reports of a day", "/id", "each report asks all partitions", is_good=False),
            Panel("by-day, 10 reports of a day", "day of /at", "each report asks one partition"),
        ),
    ),
    Pattern(
        "time_series_many_writes",
        f"Readings of today: {_WRITES}",
        "request_units",
        (
            Panel("by-date", "/date", "all of today in one partition", is_good=False),
            Panel("by-date-and-hash", "date.hash(deviceId)", "40 suffixes"),
            Panel("by-date-and-random", "date.random", "40 suffixes"),
        ),
    ),
    Pattern(
        "time_series_by_month",
        f"Readings of this month: {_WRITES}",
        "request_units",
        (
            Panel("readings", "one container, /month", "this month is one logical partition", is_good=False),
            Panel("readings-2026-11", "container of the month, /meterId", "writes spread over the meters"),
        ),
    ),
    Pattern(
        "tenants_by_key",
        f"Users of 40 tenants: {_WRITES}",
        "request_units",
        (
            Panel("by-kind", "/kind", "the users of all tenants together", is_good=False),
            Panel("by-tenant", "/tenantId", "a tenant is a logical partition"),
        ),
    ),
    Pattern(
        "tenants_by_container",
        "A tenant imports data while another one works: 800 RU/s in both cases",
        "request_units",
        (
            Panel("shared, tenants", "one container, /tenantId", "both tenants in partition 1", is_good=False),
            Panel("of its own, tenant-cedar", "container of the import", "it throttles itself alone"),
            Panel("of its own, tenant-linden", "container of the other", "undisturbed"),
        ),
    ),
    Pattern(
        "tenants_promoted",
        "20 writes of a large tenant and of a neighbor by turns; 400 RU/s in each container",
        "request_units",
        (
            Panel("before, tenants", "before: /tenantId", "both tenants in partition 1", is_good=False),
            Panel("after, tenants", "after: the old container", "the neighbor has its partition"),
            Panel("after, tenant-cedar", "after: the container of the tenant", "its requests are forwarded"),
        ),
    ),
    Pattern(
        "item_id_as_key",
        f"New orders: {_WRITES}",
        "request_units",
        (
            Panel("by-status", "/status", "all new orders are open", is_good=False),
            Panel("by-id", "/id", "every order for itself"),
            Panel("by-customer", "/customerId", "the orders of a customer together"),
        ),
    ),
    Pattern(
        "index_table",
        "20 searches for the latest orders of a product",
        "request_units",
        (
            Panel("orders, 20 searches", "orders by /customerId", "each search asks all partitions", is_good=False),
            Panel("orders-by-product, 20 searches", "entries by /productId", "each search asks one"),
        ),
    ),
    Pattern(
        "two_tiers",
        f"Orders of a region: {_WRITES}",
        "request_units",
        (
            Panel("orders", "one container, /region", "a region is one logical partition", is_good=False),
            Panel("recent-eu", "container of the region, /shopId", "writes spread over the shops"),
        ),
    ),
)

# --- drawing ----------------------------------------------------------------------------------------------------------

Figures = Mapping[str, Sequence[Mapping[str, Any]]]
GOOD_FILL: Final = "#7fa88f"
BAD_FILL: Final = "#d98a6a"
ROW_HEIGHT: Final = 30
PANELS_TOP: Final = 62
# Above the rows of a panel: its key and the remark.
HEAD_HEIGHT: Final = 48
# Beside a bar: the partition's number in front, its figures behind.
NUMBER_WIDTH: Final = 26
FIGURES_WIDTH: Final = 118


def draw(pattern: Pattern, figures: Figures) -> str:
    """Return the picture of a pattern: a panel for each container, a bar for each of its partitions."""
    measured = {picture["title"]: picture["partitions"] for picture in figures[pattern.example]}
    shown = [measured[panel.title] for panel in pattern.panels]
    largest = max(partition[pattern.by] for partitions in shown for partition in partitions)
    rows = max(map(len, shown))
    picture = Picture(
        height=PANELS_TOP + HEAD_HEIGHT + ROW_HEIGHT * rows + 20,
        title=pattern.heading,
        description="; ".join(
            f"{panel.caption}: {', '.join(_figures_of(partition, pattern.by) for partition in partitions)}"
            for panel, partitions in zip(pattern.panels, shown, strict=True)
        ),
    )
    picture.text(MARGIN, 34, pattern.heading, size=15, bold=True)
    width = (PICTURE_WIDTH - MARGIN) // len(pattern.panels)
    for column, (panel, partitions) in enumerate(zip(pattern.panels, shown, strict=True)):
        x = MARGIN + column * width
        picture.text(x, PANELS_TOP + 14, panel.caption, size=14, bold=True)
        picture.text(x, PANELS_TOP + 33, panel.remark, size=12, color=FAINT if panel.is_good else ACCENT)
        for row, partition in enumerate(partitions):
            y = PANELS_TOP + HEAD_HEIGHT + row * ROW_HEIGHT
            fill = GOOD_FILL if panel.is_good and not partition["throttled"] else BAD_FILL
            length = round((width - MARGIN - NUMBER_WIDTH - FIGURES_WIDTH) * partition[pattern.by] / largest)
            _draw_bar(picture, partition, words=_figures_of(partition, pattern.by), length=length, fill=fill, x=x, y=y)
    return picture.svg()


def _draw_bar(
    picture: Picture, partition: Mapping[str, Any], *, words: str, length: int, fill: str, x: int, y: int
) -> None:
    is_throttled = partition["throttled"] > 0
    picture.text(x + NUMBER_WIDTH - 8, y + 15, partition["id"], size=12, color=FAINT, anchor="end")
    if length > 0:
        picture.box(x + NUMBER_WIDTH, y, length, 20, fill=fill)
    color = ACCENT if is_throttled else INK
    picture.text(x + NUMBER_WIDTH + length + 8, y + 15, words, size=12, color=color, bold=is_throttled)


def _figures_of(partition: Mapping[str, Any], by: str) -> str:
    amount = f"{partition['items']:,} items" if by == "items" else f"{partition['request_units']:,.0f} RU"
    return f"{amount}, {partition['throttled']} x 429" if partition["throttled"] else amount


def read_figures() -> Figures:
    return dict(json.loads(FIGURES.read_text(encoding="utf-8")))


def draw_from_file(pattern: Pattern) -> str:
    return draw(pattern, read_figures())


PICTURES: Final[Mapping[str, Callable[[], str]]] = {
    pattern.picture_name: partial(draw_from_file, pattern) for pattern in PATTERNS
}

# --- measuring --------------------------------------------------------------------------------------------------------


def run_example(name: str, *, endpoint: str, figures: Path) -> subprocess.CompletedProcess[str]:
    """Run an example against a server with the emulator's key; it appends its pictures to the file `figures`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASTERISM_")}
    more = {"ASTERISM_URL": endpoint, "PARTITION_FIGURES": os.fspath(figures), "PYTHONPATH": os.fspath(PROJECT)}
    return subprocess.run(
        [sys.executable, os.fspath(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=EXAMPLE_SECONDS_MAX,
        check=False,
        env={**kept, **more},
    )


def read_pictures(figures: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in figures.read_text(encoding="utf-8").splitlines()]


def measure() -> Figures:
    """Run every example, and return its pictures."""
    measured: dict[str, list[dict[str, Any]]] = {}
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        for pattern in PATTERNS:
            figures = Path(folder) / f"{pattern.example}.jsonl"
            done = run_example(pattern.example, endpoint=server.cosmos_endpoint, figures=figures)
            if done.returncode:
                raise SystemExit(f"{pattern.example}.py failed:\n{done.stderr}")
            measured[pattern.example] = read_pictures(figures)
    return measured


def text_of(figures: Figures) -> str:
    """Write figures as JSON with a line for each picture, so that changes are seen."""
    examples = [
        f"{json.dumps(example)}: [\n" + ",\n".join(f"  {json.dumps(picture)}" for picture in pictures) + "\n]"
        for example, pictures in figures.items()
    ]
    return "{\n" + ",\n".join(examples) + "\n}\n"


def main() -> None:
    if "--measure" in sys.argv[1:]:
        FIGURES.write_text(text_of(measure()), encoding="utf-8")
    for name, picture in PICTURES.items():
        (FOLDER / name).write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
