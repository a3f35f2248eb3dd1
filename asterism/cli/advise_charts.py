"""Charts of `asterism advise` as SVG: bytes by logical partition, and request units by physical partition in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from asterism.advisor.keys.assessment import Assessment
from asterism.advisor.keys.key_table import KeyTable
from asterism.advisor.keys.windows import Windows
from asterism.advisor.wording import about_bytes, about_duration, about_share, key_text
from asterism.values.undefined import UNDEFINED

# The largest keys have bars of their own; all others are one bar.
BARS_MAX: Final = 14
# Of a strip: more windows or partitions are put together.
_COLUMNS_MAX: Final = 72
_ROWS_MAX: Final = 24
_WIDTH: Final = 560
_LABEL_WIDTH: Final = 190
_BAR_HEIGHT: Final = 20
_ROW_HEIGHT: Final = 18


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    share: float
    amount: str
    is_rest: bool = False


def bars_of(table: KeyTable, assessment: Assessment) -> list[Bar]:
    """Return the largest logical partitions, and one bar for all others."""
    total = sum(table.bytes.values())
    scale = table.profile.total_bytes / max(1, total)
    paths = assessment.candidate.parsed.paths
    top = sorted(table.bytes.items(), key=lambda entry: -entry[1])[:BARS_MAX]
    bars = [
        Bar(
            key_text(paths, [{} if value is UNDEFINED else value for value in key]),
            size / max(1, total),
            about_bytes(size * scale),
        )
        for key, size in top
    ]
    rest = total - sum(size for _, size in top)
    others = assessment.storage.cardinality - len(top)
    if rest > 0 and others > 0:
        bars.append(Bar(f"{others:,} other keys", rest / total, about_bytes(rest * scale), is_rest=True))
    return bars


def bar_chart(bars: Sequence[Bar], *, widest: float, title: str) -> str:
    """Return horizontal bars; `widest` is the share that fills the width, the same in charts to be compared."""
    room = _WIDTH - _LABEL_WIDTH - 110
    rows = []
    for place, bar in enumerate(bars):
        y = place * (_BAR_HEIGHT + 5)
        # The rest would dwarf all others: it is cut off, and its number says how much it is.
        width = max(2.0, min(1.0, bar.share / max(widest, 1e-9)) * room)
        kind = "rest" if bar.is_rest else "bar"
        label = escape(bar.label if len(bar.label) <= 30 else f"{bar.label[:29]}…")
        rows.append(
            f'<text class="label" x="{_LABEL_WIDTH - 8}" y="{y + 14}" text-anchor="end">{label}</text>'
            f'<rect class="{kind}" x="{_LABEL_WIDTH}" y="{y + 2}" width="{width:.1f}" height="{_BAR_HEIGHT - 4}" '
            'rx="3">'
            f"<title>{escape(bar.label)}: {escape(bar.amount)}, {about_share(bar.share)}</title></rect>"
            f'<text class="value" x="{_LABEL_WIDTH + width + 8:.1f}" y="{y + 14}">'
            f"{escape(bar.amount)} · {bar.share:.1%}</text>"
        )
    height = max(1, len(bars)) * (_BAR_HEIGHT + 5)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(rows)}</svg>"
    )


def heat_strip(windows: Windows, *, most: float, title: str) -> str:
    """Return a row for each physical partition and a column for each window, darker for more request units; `most` is
    the darkest, the same in strips to be compared."""
    rows = _condensed(windows.ru)
    if not rows:
        return '<p class="none">No requests.</p>'
    columns, partitions = len(rows), len(rows[0])
    left, room = 34.0, _WIDTH - 34.0
    width = room / columns
    cells = []
    for column, row in enumerate(rows):
        for partition, ru in enumerate(row):
            strength = min(1.0, ru / most) if most else 0.0
            cells.append(
                f'<rect class="heat" x="{left + column * width:.2f}" y="{partition * _ROW_HEIGHT}" '
                f'width="{max(0.5, width - 1):.2f}" height="{_ROW_HEIGHT - 2}" '
                f'fill-opacity="{0.06 + 0.94 * strength:.3f}">'
                f"<title>partition {partition}, {ru:,.0f} RU</title></rect>"
            )
    labels = "".join(
        f'<text class="axis" x="{left - 8}" y="{partition * _ROW_HEIGHT + 12}" text-anchor="end">{partition}</text>'
        for partition in range(partitions)
    )
    bottom = partitions * _ROW_HEIGHT + 14
    span = about_duration(len(windows.ru) * windows.seconds)
    scale = (
        f'<text class="axis" x="{left}" y="{bottom}">start</text>'
        f'<text class="axis" x="{_WIDTH}" y="{bottom}" text-anchor="end">{escape(span)}</text>'
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {bottom + 4}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{labels}{''.join(cells)}{scale}</svg>"
    )


def hottest_cell(windows: Windows) -> float:
    return max((ru for row in _condensed(windows.ru) for ru in row), default=0.0)


def _condensed(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Put neighbors together where there are too many windows or partitions to draw: the mean of windows, and the
    hottest of partitions, which must not disappear."""
    step = -(-len(rows) // _COLUMNS_MAX) or 1
    found = []
    for start in range(0, len(rows), step):
        group = rows[start : start + step]
        means = [sum(column) / len(group) for column in zip(*group, strict=True)]
        height = -(-len(means) // _ROWS_MAX) or 1
        found.append([max(means[first : first + height]) for first in range(0, len(means), height)])
    return found
