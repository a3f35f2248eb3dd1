"""Numbers as people read them, the same on every page; `static/format.js` has the same rules for scripts."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")
_STEP: Final = 1024
NO_FIGURE: Final = "\N{EN DASH}"


MASK: Final = "********"


def masked(text: str, key: str) -> str:
    """Return a text without the key in it, for people who look over a shoulder."""
    return text.replace(key, MASK)


def bytes_text(size: float | None) -> str:
    """Return a size with three digits at most: `1.5 MB`; a dash where it is unknown."""
    if size is None:
        return NO_FIGURE
    amount = float(size)
    for unit in _UNITS:
        if amount < _STEP or unit == _UNITS[-1]:
            break
        amount /= _STEP
    digits = 0 if unit == "B" or amount >= 100 else 1
    return f"{amount:.{digits}f} {unit}"


def count_text(count: float | None) -> str:
    """Return a number with separators: `12,345`; fractions of small ones stay."""
    if count is None:
        return NO_FIGURE
    if float(count).is_integer() or abs(count) >= 100:
        return f"{count:,.0f}"
    return f"{count:,.1f}"
