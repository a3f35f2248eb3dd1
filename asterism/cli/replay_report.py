"""The report of a replay: predicted against measured, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import typer

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.keys.assessment import Prediction
from asterism.advisor.replay_figures import Measured, error_of, skew_of
from asterism.advisor.replay_schedule import Schedule
from asterism.cli.tables import print_table

_COLUMNS: Final = ("key", "RU/s", "busiest partition / mean", "429", "batches broken", "items moved")


@dataclass(frozen=True, slots=True)
class ReplayedKey:
    key: CandidateKey
    measured: Measured


@dataclass(frozen=True, slots=True)
class Replay:
    schedule: Schedule
    items: int
    keys: Sequence[ReplayedKey]
    # By the names of the keys.
    predicted: Mapping[str, Prediction]


def describe_replay(replay: Replay) -> dict[str, Any]:
    """Return the replay as JSON."""
    schedule = replay.schedule
    return {
        "requests": len(schedule.units),
        "of_requests": schedule.captured_units,
        "items": replay.items,
        "seconds": round(schedule.seconds, 1),
        "compression": round(schedule.compression, 3),
        "ru_per_second": schedule.ru_per_second,
        "stands_for_ru_per_second": schedule.given_ru_per_second,
        "is_to_scale": schedule.is_to_scale,
        "keys": [_describe_key(each, schedule, replay.predicted[each.key.name]) for each in replay.keys],
    }


def _describe_key(replayed: ReplayedKey, schedule: Schedule, predicted: Prediction) -> dict[str, Any]:
    measured = replayed.measured
    found = {
        "ru_per_second": round(measured.ru_per_second(schedule), 2),
        "charges": {kind: round(figures.charge, 2) for kind, figures in sorted(measured.kinds.items())},
        "skew": round(measured.skew, 3),
        "throttled_share": round(measured.throttled_share, 4),
    }
    described: dict[str, Any] = {"key": replayed.key.name, "definition": dict(replayed.key.definition)}
    described["measured"] = found | {
        "shares_of_partitions": [round(share, 4) for share in measured.shares()],
        "broken_batches": measured.broken_batches,
        "moved_items": measured.moved_items,
        "refused": {str(status): count for status, count in sorted(measured.refused.items())},
        "late_seconds": round(measured.late_seconds, 2),
    }
    described["predicted"] = {
        "ru_per_second": round(predicted.ru_per_second, 2),
        "charges": {kind: round(charge, 2) for kind, charge in sorted(predicted.ru_by_kind.items())},
        "skew": round(skew_of(predicted), 3),
        "throttled_share": round(predicted.throttled_share, 4),
    }
    described["ru_error"] = round(error_of(predicted.ru_per_second, measured.ru_per_second(schedule)), 4)
    return described


def print_replay(replay: Replay) -> None:
    """Print predicted figures beside measured ones, and then the mean charges by kind of request."""
    keys = describe_replay(replay)["keys"]
    print_table("Replay: predicted → measured", _COLUMNS, _rows(keys))
    charges = [
        [key["key"], kind, f"{key['predicted']['charges'].get(kind, 0.0):,.2f}", f"{charge:,.2f}"]
        for key in keys
        for kind, charge in key["measured"]["charges"].items()
    ]
    print_table("RU of a request", ["key", "requests", "predicted", "measured"], charges)
    for sentence in sentences_about(replay):
        typer.echo(sentence)


def _rows(keys: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [
        [
            key["key"],
            _pair(key, "ru_per_second", "{:,.1f}"),
            _pair(key, "skew", "{:.2f}"),
            _pair(key, "throttled_share", "{:.1%}"),
            str(key["measured"]["broken_batches"]),
            str(key["measured"]["moved_items"]),
        ]
        for key in keys
    ]


def replay_section(replay: Replay) -> str:
    """Return the replay as a section of the page of charts; every text of the user is escaped."""
    heads = "".join(f"<th>{escape(name)}</th>" for name in _COLUMNS)
    rows = "".join(map(_table_row, _rows(describe_replay(replay)["keys"])))
    said = "".join(f'<p class="soft">{escape(sentence)}</p>' for sentence in sentences_about(replay))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h2>Replay: predicted → measured</h2><div class="card scroll">{table}{said}</div>'


def _table_row(row: Sequence[str]) -> str:
    figures = "".join(f'<td class="n">{escape(figure)}</td>' for figure in row[1:])
    return f"<tr><td><code>{escape(row[0])}</code></td>{figures}</tr>"


def _pair(key: Mapping[str, Any], name: str, form: str) -> str:
    return f"{form.format(key['predicted'][name])} → {form.format(key['measured'][name])}"


def sentences_about(replay: Replay) -> list[str]:
    """Return what a reader has to know about the scale and the limits of a replay."""
    schedule = replay.schedule
    said = [
        f"{len(schedule.units):,} of {schedule.captured_units:,} requests with {replay.items:,} items, in "
        f"{schedule.seconds:,.0f} s for each key. A second stands for {schedule.compression:,.3g} s of the capture, "
        f"and {schedule.ru_per_second:,} RU/s for {schedule.given_ru_per_second:,} RU/s."
    ]
    if not schedule.is_to_scale:
        said.append("The requests came closer together than the RU/s could be raised: the 429 are an upper bound.")
    late = max((each.measured.late_seconds for each in replay.keys), default=0.0)
    if late > 1.0:
        said.append(f"The machine was too busy: requests were sent up to {late:.1f} s late, and the 429 are too few.")
    refused = {status for each in replay.keys for status in each.measured.refused}
    if refused:
        said.append(f"Some requests were refused with {', '.join(map(str, sorted(refused)))}; --json has the counts.")
    return said
