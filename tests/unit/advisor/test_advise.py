"""Advice on a partition key: figures with known answers, the order of the candidates, and warnings."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.keys.assessment import Assessment
from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.load import Load
from asterism.advisor.keys.report import Report, migration_command
from asterism.advisor.keys.throttling import rate_needed, throttled_share
from asterism.advisor.keys.undigested import Undigester
from asterism.advisor.keys.windows import windows_of
from asterism.advisor.value_digests import digest
from asterism.limits import Limits
from tests.unit.advisor.advised import START, TENANTS, advice, assessed, orders, profile_of, queries, reads

TENANT, ID = "/tenantId", "/id"


@pytest.fixture(scope="module")
def shop() -> Report:
    """Tenants read their own orders, by id and by filter, on four physical partitions."""
    by_tenant = queries(300, TENANT, [f"t{number}" for number in range(TENANTS)])
    return advice(orders(800), [*reads(900), *by_tenant])


def test_the_key_that_requests_know_is_the_best(shop: Report) -> None:
    assert shop.best is not None
    assert shop.best.candidate.sources[0] == TENANT
    assert shop.best.routes.routed == 1.0
    assert shop.best.routes.point == pytest.approx(0.75)
    assert shop.partitions == 4


def test_requests_that_do_not_know_the_key_ask_all_partitions(shop: Report) -> None:
    by_user = assessed(shop, "/userId")
    assert by_user.routes.fan_out == 1.0
    # A page of each of the four partitions: its base, a look-up, and the item on one of them.
    assert by_user.predicted.ru_by_kind["read"] == pytest.approx(4 * 2.35, abs=0.1)
    assert assessed(shop, TENANT).predicted.ru_by_kind["read"] == pytest.approx(1.0)


def test_every_share_is_of_a_whole(shop: Report) -> None:
    for each in shop.ranked:
        routes = each.routes
        assert routes.point + routes.single + routes.several + routes.fan_out == pytest.approx(1.0)
        assert sum(each.predicted.ru_share_by_partition) == pytest.approx(1.0)
        assert 0.25 <= each.windows.physical.mean <= each.windows.physical.worst <= 1.0


def test_each_candidate_says_why_it_stands_where_it_does(shop: Report) -> None:
    assert all(each.why.endswith(".") for each in shop.ranked)
    assert "ask all partitions" in assessed(shop, "/userId").why


def test_rules_of_thumb_are_assessed_for_comparison(shop: Report) -> None:
    assert shop.baselines == {"highest cardinality": ID, "most filtered": TENANT}
    assert {ID, TENANT} <= {each.candidate.name for each in shop.ranked}


def test_the_same_seed_gives_the_same_advice() -> None:
    requests = queries(200, TENANT, ["t1", "t2"])
    first, again = (advice(orders(200), requests, rng=random.Random(7)).to_json() for _ in range(2))
    assert first == again


def test_one_hot_key_is_one_hot_partition() -> None:
    report = advice(orders(400), queries(200, TENANT, ["t7"]))
    by_tenant = assessed(report, TENANT)
    assert by_tenant.windows.logical.mean == pytest.approx(1.0)
    assert by_tenant.windows.physical.mean == pytest.approx(1.0)
    assert max(by_tenant.predicted.ru_share_by_partition) == pytest.approx(1.0)


def test_skew_in_time_is_seen_although_the_totals_are_even() -> None:
    """Each tenant has one second of its own."""
    requests = [
        CapturedRequest(START + number / 25, "read", item_id=f"o-{number}", key=(f"t{number // 25 % TENANTS}",))
        for number in range(25 * TENANTS)
    ]
    by_tenant = assessed(advice(orders(400), requests), TENANT)
    assert by_tenant.windows.logical.mean > 0.95
    assert max(by_tenant.predicted.ru_share_by_partition) < 0.6


def test_a_key_that_writes_change_does_not_work() -> None:
    patches = [
        CapturedRequest(START + number / 50, "patch", item_id="o-0", key=("t0",), values={"/status": f"s{number}"})
        for number in range(20)
    ]
    by_status = assessed(advice(orders(200), [*reads(100), *patches]), "/status")
    assert [problem.kind for problem in by_status.problems] == ["mutable"]


def test_a_transaction_whose_items_have_several_keys_would_break() -> None:
    batch = [
        CapturedRequest(
            START, "create", item_id=f"n-{user}", key=("t1",), batch="b", values={TENANT: "t1", "/userId": user}
        )
        for user in ("u1", "u2")
    ]
    report = advice(orders(200), [*reads(100), *batch])
    assert assessed(report, TENANT).broken_batch_share == 0.0
    assert assessed(report, "/userId").broken_batch_share == 1.0


def test_items_of_one_id_and_key_are_not_unique() -> None:
    twins = [{"id": "same", "tenantId": "t1", "userId": f"u{number}"} for number in range(2)]
    report = advice([*orders(200), *twins], reads(100))
    assert not assessed(report, TENANT).is_unique
    assert assessed(report, "/userId").is_unique


def test_a_key_that_grows_beyond_a_logical_partition_is_named_with_its_time() -> None:
    items = [{"id": str(n), "tenantId": "t0", "userId": f"u{n}", "at": START + n / 1_000} for n in range(2_000)]
    by_tenant = assessed(advice(items, reads(100)), TENANT)
    assert [problem.kind for problem in by_tenant.problems] == ["full"]
    assert by_tenant.storage.full_after_seconds is not None


def test_items_without_a_value_are_counted() -> None:
    items = [*orders(100), *({"id": f"x{number}", "tenantId": "t1"} for number in range(60))]
    by_user = assessed(advice(items, reads(100)), "/userId")
    assert by_user.storage.absent_share == pytest.approx(60 / 160)
    assert "absent" in {problem.kind for problem in by_user.problems}


def test_candidates_stay_bounded_however_many_paths_there_are() -> None:
    items = [{"id": str(n), "tenantId": f"t{n % 9}", **{f"p{i}": n % (i + 2) for i in range(120)}} for n in range(300)]
    requests = [*queries(50, "/p7", ["1"]), *queries(50, "/p9", ["2"]), *reads(50)]
    assert len(advice(items, requests).ranked) <= 62


@pytest.mark.parametrize(
    ("items", "requests", "said"),
    [
        (orders(50), [], "No requests"),
        (orders(50), reads(100), "Only 50 items"),
        (orders(50), reads(100), "Only 100 requests"),
        (orders(50), reads(100), "The requests cover"),
    ],
)
def test_what_the_data_cannot_tell_is_said(
    items: list[dict[str, str]], requests: list[CapturedRequest], said: str
) -> None:
    assert any(warning.startswith(said) for warning in advice(items, requests).warnings)


def test_without_requests_the_order_is_by_the_data() -> None:
    report = advice(orders(2_000), [])
    assert report.best is not None
    assert report.best.storage.largest_share < 0.05
    assert assessed(report, "/status").why == "2 keys, the largest with 50 % of the data."


def test_requests_in_any_order_give_the_same_advice() -> None:
    requests = reads(150)
    forward, backward = advice(orders(300), requests), advice(orders(300), requests[::-1])
    assert forward.to_json() == backward.to_json()


def test_a_sample_of_requests_stands_for_all_of_them() -> None:
    whole, part = (assessed(advice(orders(300), reads(200), sampling=each), TENANT) for each in (1.0, 0.25))
    assert part.predicted.ru_per_second == pytest.approx(4 * whole.predicted.ru_per_second)
    assert part.predicted.ru_needed == pytest.approx(4 * (whole.predicted.ru_needed or 0.0))


def test_digests_are_read_as_the_values_of_the_items() -> None:
    salt = b"0123456789abcdef"
    request = CapturedRequest(
        START,
        "query",
        key=(digest("t1", salt=salt),),
        equal={"/userId": (digest("u1", salt=salt), digest("nobody", salt=salt))},
        between={"/at": (digest("2026-01-01", salt=salt), None)},
    )
    (found,) = Undigester(profile_of(orders(100)), salt).requests([request])
    assert found.key == ("t1",)
    assert found.equal == {"/userId": ("u1", digest("nobody", salt=salt))}
    # The time of the request stands in for a time stamp that no item has.
    assert found.between == {"/at": ("2025-11-18T20:00:00+00:00", None)}


def test_the_command_names_the_levels_or_the_rule() -> None:
    assert migration_command("shop", "orders", CandidateKey.of_paths("/a", "/b")) == (
        "asterism rekey shop orders --to orders-rekeyed --path /a --path /b"
    )
    definition = {"paths": ["/pk"], "kind": "Hash", "version": 2, "synthetic": {"/pk": {"parts": ["/a", "/b"]}}}
    command = migration_command("shop", "my orders", CandidateKey.of_definition(definition))
    assert command.startswith("asterism rekey shop 'my orders' --to 'my orders-rekeyed' --path /pk --synthetic '")


# --- throughput -------------------------------------------------------------------------------------------------------


def load_of(costs: Sequence[tuple[float, int, float]], *, partitions: int) -> Load:
    load = Load(partitions, payments=[(at, where, cost, number) for number, (at, where, cost) in enumerate(costs)])
    load.routes.point = len(costs)
    return load


def test_an_even_load_needs_what_it_uses() -> None:
    load = load_of([(number / 100, number % 4, 1.0) for number in range(2_000)], partitions=4)
    assert rate_needed(load) * 4 == pytest.approx(100.0, rel=0.1)
    assert throttled_share(load, ru_per_second=400) == 0.0


def test_a_hot_partition_needs_its_rate_for_all() -> None:
    load = load_of([(number / 100, 0, 1.0) for number in range(2_000)], partitions=4)
    assert rate_needed(load) * 4 == pytest.approx(400.0, rel=0.1)


def test_what_is_far_above_the_throughput_is_refused() -> None:
    load = load_of([(number / 10_000, 0, 100.0) for number in range(10_000)], partitions=1)
    assert throttled_share(load, ru_per_second=400) > 0.9


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0, 60), st.integers(0, 3), st.floats(0.1, 50)), min_size=1, max_size=60))
def test_at_the_rate_needed_nothing_is_refused(costs: list[tuple[float, int, float]]) -> None:
    load = load_of(sorted(costs), partitions=4)
    assert throttled_share(load, ru_per_second=max(rate_needed(load) * 4, 0.1)) == 0.0


@given(st.lists(st.tuples(st.floats(0, 60), st.integers(0, 3), st.floats(0.1, 50)), min_size=1, max_size=60))
def test_windows_hold_all_of_the_load(costs: list[tuple[float, int, float]]) -> None:
    load = load_of(sorted(costs), partitions=4)
    windows = windows_of(load, seconds=5.0)
    assert sum(map(sum, windows.ru)) == pytest.approx(sum(cost for _, _, cost in costs))
    assert 0.25 <= windows.physical.mean <= windows.physical.worst + 1e-9


def test_a_partition_that_no_throughput_is_enough_for_is_named() -> None:
    hot = queries(600, TENANT, ["t7"], per_second=600)
    low = Limits(physical_partition_ru_per_second_max=500)
    report = advice(orders(400), hot, limits=low)
    by_tenant: Assessment = assessed(report, TENANT)
    assert by_tenant.predicted.ru_needed is None
    assert "unreachable" in {problem.kind for problem in by_tenant.problems}
