"""A small container for tests of the advisor: orders of tenants, and the requests of a shop on them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.keys.advise import AdviseOptions, advise
from asterism.advisor.keys.assessment import Assessment
from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.report import Report
from asterism.values.json.text import dumps

START = 1_763_496_000.0
TENANTS = 40


def orders(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"o-{number}",
            "tenantId": f"t{number % TENANTS}",
            "userId": f"u{number % (5 * TENANTS)}",
            "status": ("open", "paid")[number % 2],
            "at": f"2026-0{1 + number % 9}-11T10:00:00Z",
            "lines": {"count": number % 7},
        }
        for number in range(count)
    ]


def profile_of(items: Iterable[Mapping[str, Any]], *, sampled_items: int = 20_000, seed: int = 1) -> ItemProfile:
    profile = ItemProfile(random.Random(seed), sampled_items=sampled_items)
    for item in items:
        profile.feed(item, len(dumps(item)))
    return profile


def reads(count: int, *, per_second: float = 100.0) -> list[CapturedRequest]:
    """Return point reads that name the tenant."""
    return [
        CapturedRequest(START + number / per_second, "read", item_id=f"o-{number}", key=(f"t{number % TENANTS}",))
        for number in range(count)
    ]


def queries(count: int, path: str, values: Sequence[str], *, per_second: float = 100.0) -> list[CapturedRequest]:
    return [
        CapturedRequest(START + number / per_second, "query", equal={path: (values[number % len(values)],)})
        for number in range(count)
    ]


def advice(items: Iterable[Mapping[str, Any]], requests: Sequence[CapturedRequest], **options: Any) -> Report:
    chosen = {"present": CandidateKey.of_paths("/tenantId"), "ru_per_second": 24_000, **options}
    return advise(profile_of(items), requests, AdviseOptions(**chosen))


def assessed(report: Report, name: str) -> Assessment:
    (found,) = (each for each in report.ranked if each.candidate.name == name)
    return found
