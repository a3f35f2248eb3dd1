"""A small workload of three customers, and replays of it."""

from __future__ import annotations

from typing import Any

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.captured_request import CapturedRequest
from asterism.cli.advise_replay import ReplaySettings

PRESENT = CandidateKey.of_paths("/customer")
BY_ID = CandidateKey.of_paths("/id")
BY_CITY = CandidateKey.of_paths("/city")
# Of a capture whose replay takes a minute: something can happen in the middle of it.
LONG_SECONDS = 80_000.0
SETTINGS = ReplaySettings(ru_per_second=4000, partitions=2)


def items(count: int = 30) -> list[dict[str, Any]]:
    return [{"id": f"i{n}", "customer": f"c{n % 3}", "city": f"t{n % 2}", "total": n} for n in range(count)]


def requests(*, seconds: float = 20.0, count: int = 60) -> list[CapturedRequest]:
    """Return reads, creates, patches, queries and deletes in turn, on items that are there then."""
    found: list[CapturedRequest] = []
    for number in range(count):
        at, n = 1000.0 + seconds * number / count, number % 30
        name = {"item_id": f"i{n}", "key": (f"c{n % 3}",)}
        new = {"item_id": f"new{number}", "key": ("c1",)}
        values = {"/customer": "c1", "/city": "t0", "/total": number}
        by_turn = [
            CapturedRequest(at, "read", **name),  # type: ignore[arg-type]  # members by name
            CapturedRequest(at, "create", values=values, size_bytes=600, **new),  # type: ignore[arg-type]
            CapturedRequest(at, "patch", values={"/total": number}, **name),  # type: ignore[arg-type]
            CapturedRequest(at, "query", equal={"/customer": (f"c{n % 3}",)}, results=10),
        ]
        found.append(by_turn[number % 4])
    return found
