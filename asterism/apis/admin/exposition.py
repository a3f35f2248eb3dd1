"""Metrics as text: the format of Prometheus, and OpenMetrics 1.0 for those that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_COUNTER_SUFFIX = "_total"


@dataclass(slots=True)
class Family:
    """The samples of a metric. In a page it stands under its name, which ends in `_total` for a counter."""

    kind: str
    help: str
    samples: list[str] = field(default_factory=list)


def labels_of(**labels: str) -> str:
    inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def prometheus_text(families: Mapping[str, Family]) -> str:
    return _text(families, ends_with="")


def openmetrics_text(families: Mapping[str, Family]) -> str:
    """Return the page with families of counters named without the suffix that their samples have, and its last line."""
    return _text(
        {
            name.removesuffix(_COUNTER_SUFFIX) if family.kind == "counter" else name: family
            for name, family in families.items()
        },
        ends_with="# EOF\n",
    )


def _text(families: Mapping[str, Family], *, ends_with: str) -> str:
    lines: list[str] = []
    for name, family in families.items():
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}", *family.samples]
    return "\n".join(lines) + "\n" + ends_with


def prefers_openmetrics(accept: str | None) -> bool:
    """Return True if an Accept header names OpenMetrics 1.0, and not after the text of Prometheus."""
    qualities = {"openmetrics": 0.0, "plain": 0.0}
    for entry in (accept or "").lower().split(","):
        media_type, *given = (part.strip() for part in entry.split(";"))
        parameters = dict(part.partition("=")[::2] for part in given)
        if media_type == "application/openmetrics-text" and parameters.get("version", "1.0.0") == "1.0.0":
            qualities["openmetrics"] = max(qualities["openmetrics"], _quality(parameters))
        elif media_type == "text/plain":
            qualities["plain"] = max(qualities["plain"], _quality(parameters))
    return qualities["openmetrics"] > 0 and qualities["openmetrics"] >= qualities["plain"]


def _quality(parameters: Mapping[str, str]) -> float:
    """Return the weight of a media type: 1 without one, 0 for one that is not a number."""
    text = parameters.get("q", "1")
    return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else 0.0
