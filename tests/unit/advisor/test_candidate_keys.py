"""Candidates for a partition key: the keys of items, and what a request reaches that knows some values."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism import keys
from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.keys.candidate import ROUTES_MAX, paths_of
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.partition_key import PartitionKeyDefinition, extract
from asterism.values.undefined import UNDEFINED

SCALARS = st.one_of(st.text(max_size=20), st.integers(-(2**53), 2**53), st.booleans(), st.none())
DAY = CandidateKey.of_rule(keys.time_bucket("/at", "day"))
BY_DEVICE = CandidateKey.of_rule(keys.concatenate("/device", keys.time_bucket("/at", "day").parts[0]))
DRAWN = CandidateKey.of_rule(keys.random_suffix("/day", count=400))
HASHED = CandidateKey.of_rule(keys.hash_suffix("/day", of="/vin", count=40))


@pytest.mark.parametrize(
    ("candidate", "name"),
    [
        (CandidateKey.of_paths("/tenantId"), "/tenantId"),
        (CandidateKey.of_paths("/tenantId", "/userId"), "/tenantId, /userId"),
        (BY_DEVICE, "/device + day(/at)"),
        (DRAWN, "/day . random 400"),
        (HASHED, "/day . hash(/vin) % 40"),
    ],
)
def test_a_candidate_says_in_its_name_what_it_is(candidate: CandidateKey, name: str) -> None:
    assert candidate.name == name
    assert CandidateKey.of_definition(candidate.definition) == candidate


@given(tenant=SCALARS, user=SCALARS)
def test_the_key_of_an_item_is_that_of_the_server(tenant: Any, user: Any) -> None:
    item = {"tenant": tenant, "who": {"user": user}}
    candidate = CandidateKey.of_paths("/tenant", "/who/user")
    definition = PartitionKeyDefinition.parse({"paths": ["/tenant", "/who/user"], "kind": "MultiHash", "version": 2})
    key = candidate.key_of(item)
    assert key == extract(definition, item)
    assert candidate.key_of_values({"/tenant": tenant, "/who/user": user}) == key
    assert candidate.point(key) == storage_point(definition, extract(definition, item))


@given(day=st.dates(), vin=st.text(min_size=1, max_size=17))
def test_a_synthetic_key_is_one_that_its_rule_gives(day: Any, vin: str) -> None:
    item = {"day": day.isoformat(), "vin": vin, "device": vin, "at": f"{day.isoformat()}T10:00:00Z"}
    rng = random.Random(day.toordinal())
    for candidate in (DAY, BY_DEVICE, DRAWN, HASHED):
        assert candidate.rule is not None
        assert candidate.key_of(item, draw=rng.randrange)[0] in candidate.rule.keys_of(item)


def test_an_item_without_a_source_has_no_value() -> None:
    assert CandidateKey.of_paths("/tenant").key_of({}) == (UNDEFINED,)
    assert HASHED.key_of({"day": "x"}) == (UNDEFINED,)
    assert CandidateKey.of_paths("/tenant").key_of({"tenant": {"a": 1}}) == (UNDEFINED,)


def test_a_request_that_knows_the_value_reaches_one_key_and_others_fan_out() -> None:
    candidate = CandidateKey.of_paths("/tenant")
    assert candidate.routes_of({"/tenant": ["a"]}) == [("a",)]
    assert candidate.routes_of({"/tenant": ["a", "b", "a"]}) == [("a",), ("b",)]
    assert candidate.routes_of({"/id": ["1"]}) is None


def test_the_first_levels_of_a_hierarchy_are_a_prefix() -> None:
    candidate = CandidateKey.of_paths("/tenant", "/user")
    assert candidate.routes_of({"/tenant": ["a"]}) == [("a",)]
    assert candidate.routes_of({"/tenant": ["a"], "/user": ["1", "2"]}) == [("a", "1"), ("a", "2")]
    assert candidate.routes_of({"/user": ["1"]}) is None


def test_a_reader_asks_all_suffixes_that_it_cannot_compute() -> None:
    assert len(DRAWN.routes_of({"/day": ["x"]}) or []) == 400
    assert len(HASHED.routes_of({"/day": ["x"]}) or []) == 40
    assert HASHED.routes_of({"/day": ["x"], "/vin": ["v"]}) == [HASHED.key_of({"day": "x", "vin": "v"})]
    assert HASHED.routes_of({"/vin": ["v"]}) is None


def test_bounds_of_time_are_the_buckets_between_them() -> None:
    known = {"/device": ["a"]}
    between = {"/at": (1_767_225_600, 1_767_225_600 + 2 * 86_400)}
    assert BY_DEVICE.routes_of(known, between) == [("a-2026-01-01",), ("a-2026-01-02",), ("a-2026-01-03",)]
    assert BY_DEVICE.routes_of(known, {"/at": (1_767_225_600, None)}) is None


def test_too_many_keys_are_a_fan_out() -> None:
    values = [str(number) for number in range(ROUTES_MAX + 1)]
    assert CandidateKey.of_paths("/tenant").routes_of({"/tenant": values}) is None
    assert DRAWN.routes_of({"/day": ["x", "y", "z"]}) is None


@pytest.mark.parametrize("given", ["", "tenant", "/a,/b,/c,/d", "/a,b"])
def test_what_is_no_path_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="is not a partition key"):
        paths_of(given)
