"""Values that each request gets anew."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from asterism.languages.gremlin.plan.generated import RequestValues, may_generate
from asterism.languages.gremlin.plan.variables import with_values
from asterism.languages.gremlin.text.parser import parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g.inject(UUID())", True),
        ("g.inject(datetime( ))", True),
        ("g.inject(Instant.now())", True),
        ("g.inject(UUID.randomUUID())", True),
        ("g.V().out('knows')", False),
        ("g.inject(datetime('2020-01-01'))", False),
    ],
)
def test_texts_with_such_calls_are_found(text: str, expected: bool) -> None:
    assert may_generate(text) is expected


def test_a_request_has_one_time_and_a_new_identifier_for_every_call() -> None:
    numbers = iter(range(256))
    values = RequestValues({"x": 1}, now_seconds=60.0, random_bytes=lambda size: bytes([next(numbers)] * size))
    traversal = with_values(parse("g.inject(datetime(), datetime(), UUID(), UUID(), x)"), values)
    first, second, identifier, other, bound = traversal.steps[0].arguments
    assert first == second == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert identifier != other
    assert (identifier.version, bound) == (4, 1)
