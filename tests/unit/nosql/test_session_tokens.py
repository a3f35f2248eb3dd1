"""Session tokens in all their forms, and which consistency levels a request may ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.nosql.session import CONSISTENCY_LEVELS, ConsistencyRules, parse_session_token, session_token
from asterism.errors import MalformedRequest


@given(st.integers(0, 10**6), st.integers(0, 2**63))
def test_a_token_that_was_given_is_read_back(range_id: int, lsn: int) -> None:
    assert parse_session_token(session_token(range_id, lsn)) == {range_id: lsn}


@pytest.mark.parametrize(
    ("token", "reached"),
    [
        ("0:-1#12", {0: 12}),
        ("0:-1#12,1:-1#7", {0: 12, 1: 7}),
        ("0:1#12#3=11#4=9", {0: 12}),
        ("0:12", {0: 12}),
        ("0:-1#12, 0:-1#5", {0: 12}),
    ],
)
def test_every_form_of_a_token_is_understood(token: str, reached: dict[int, int]) -> None:
    assert parse_session_token(token) == reached


@pytest.mark.parametrize("token", ["", "x", "0", "0:", "a:-1#1", "0:-1#x", "0:-1#1,,"])
def test_a_malformed_token_is_refused(token: str) -> None:
    with pytest.raises(MalformedRequest):
        parse_session_token(token)


@pytest.mark.parametrize("level", CONSISTENCY_LEVELS)
def test_a_request_may_ask_for_the_accounts_level_or_a_weaker_one(level: str) -> None:
    rules = ConsistencyRules(level)
    for weaker in CONSISTENCY_LEVELS[CONSISTENCY_LEVELS.index(level) :]:
        assert rules.session_of({"x-ms-consistency-level": weaker}) is None


@pytest.mark.parametrize("level", CONSISTENCY_LEVELS[1:])
def test_a_stronger_level_than_the_accounts_is_refused(level: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        ConsistencyRules(level).session_of({"x-ms-consistency-level": "Strong"})
    assert "stronger" in refused.value.reason


def test_an_unknown_level_is_refused_as_invalid() -> None:
    with pytest.raises(MalformedRequest) as refused:
        ConsistencyRules("Session").session_of({"x-ms-consistency-level": "Perfect"})
    assert "is invalid" in refused.value.reason


def test_a_token_counts_only_for_session_consistency() -> None:
    rules = ConsistencyRules("Session")
    token = {"x-ms-session-token": "0:-1#5"}
    assert rules.session_of(token) == {0: 5}
    assert rules.session_of({**token, "x-ms-consistency-level": "Session"}) == {0: 5}
    assert rules.session_of({**token, "x-ms-consistency-level": "Eventual"}) is None


@pytest.mark.parametrize("level", CONSISTENCY_LEVELS)
def test_only_strong_and_bounded_reads_need_the_newest(level: str) -> None:
    needs = level in ("Strong", "BoundedStaleness")
    assert ConsistencyRules("Strong").reads_newest({"x-ms-consistency-level": level}) is needs
    assert ConsistencyRules(level).reads_newest({}) is needs
