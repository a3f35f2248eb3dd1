"""The verdict on a partition key: a sentence that follows from sizes and load, whatever their order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.advisor.verdict import (
    ITEMS_PER_PARTITION_MIN,
    GrowingKey,
    KeyPart,
    PartitionFacts,
    Surroundings,
    Verdict,
    judge,
)
from asterism.limits import GIB, KIB, MIB

CONTAINER = Surroundings(noun="container", logical_bytes_max=20 * GIB, ru_share=6000.0)


def verdict(*partitions: PartitionFacts, growing: tuple[GrowingKey, ...] = ()) -> Verdict:
    return judge(partitions, growing=growing, surroundings=CONTAINER)


def partition(number: int, size: int, **more: object) -> PartitionFacts:
    return replace(PartitionFacts(str(number), size, items=1000), **more)  # type: ignore[arg-type]  # fields by name


def even(*, count: int = 4, **more: object) -> list[PartitionFacts]:
    return [partition(number, 10 * MIB + number, **more) for number in range(count)]


def test_a_container_without_items_is_empty() -> None:
    judged = verdict(PartitionFacts("0", 0, 0))
    assert (judged.kind, judged.sentence) == ("empty", "The container holds no items yet.")


def test_few_items_are_not_judged() -> None:
    judged = verdict(PartitionFacts("0", 900, 9), PartitionFacts("1", 100, 1))
    assert judged.kind == "few items"
    assert "10 items in 2 partitions" in judged.sentence


def test_equal_partitions_are_even() -> None:
    judged = verdict(*even())
    assert judged.kind == "even"
    assert "evenly over 4 partitions" in judged.sentence


def test_partitions_that_cannot_be_read_are_not_said_to_be_even() -> None:
    assert verdict(*even(), PartitionFacts("9", None, None)).kind == "unknown"


def test_a_full_partition_is_named_with_its_multiple_of_the_mean() -> None:
    judged = verdict(partition(0, 700 * MIB), *(partition(number, 100 * MIB) for number in (1, 2, 3)))
    assert judged.kind == "skewed storage"
    assert judged.sentence == "Partition 0 holds 70 % of all data, 2.8 times the mean of 4 partitions."
    assert judged.advice.startswith("Split partition 0")
    assert judged.figures.storage_skew == pytest.approx(2.8)


def test_a_full_partition_of_one_key_is_not_worth_a_split() -> None:
    large = KeyPart("date=2026-11-18", 690 * MIB)
    judged = verdict(partition(0, 700 * MIB, largest=large), partition(1, 1 * MIB), partition(2, 1 * MIB))
    assert "under the key date=2026-11-18" in judged.sentence
    assert "never divided" in judged.advice


def test_a_single_partition_with_a_key_that_holds_nearly_everything_is_skewed() -> None:
    judged = verdict(partition(0, 100 * MIB, largest=KeyPart("date=2026-11-18", 97 * MIB)))
    assert (judged.kind, judged.sentence) == ("skewed storage", "The key date=2026-11-18 holds 97 % of all data.")


def test_a_key_with_most_of_the_load_is_named() -> None:
    hot = partition(1, 10 * MIB, request_units=9000.0, hottest=KeyPart("device=7", 8800.0), peak_ru_per_second=300.0)
    judged = verdict(hot, *(partition(number, 10 * MIB, request_units=300.0) for number in (2, 3)))
    assert judged.kind == "hot key"
    assert judged.sentence == "The key device=7 takes 92 % of the request units."
    assert judged.figures.hottest_key == "device=7"
    assert judged.figures.normalized_ru["1"] == pytest.approx(0.05)


def test_a_throttled_partition_beside_idle_ones_is_the_worst_of_it() -> None:
    hot = partition(1, 90 * MIB, request_units=9000.0, throttled=70, hottest=KeyPart("date=2026-11-18", 8990.0))
    judged = verdict(hot, partition(2, 1 * MIB), partition(3, 1 * MIB))
    assert [finding.kind for finding in judged.findings] == ["hot key", "skewed storage"]
    assert "partition 1, which has it, answers 429 while the others are nearly idle" in judged.sentence


def test_a_busy_partition_of_many_keys_is_a_hot_partition() -> None:
    hot = partition(1, 10 * MIB, request_units=9000.0, throttled=3, hottest=KeyPart("device=7", 90.0))
    judged = verdict(hot, partition(2, 10 * MIB, request_units=100.0), partition(3, 10 * MIB, request_units=100.0))
    assert judged.kind == "hot partition"
    assert judged.advice.startswith("Split partition 1")


def test_uneven_load_far_below_the_throughput_is_no_finding() -> None:
    hot = partition(1, 10 * MIB, request_units=900.0, peak_ru_per_second=3.0)
    assert verdict(hot, partition(2, 10 * MIB, peak_ru_per_second=0.0)).kind == "even"


def test_partitions_that_are_all_throttled_need_more_throughput() -> None:
    assert verdict(*even(request_units=9000.0, throttled=20)).kind == "short of throughput"


def test_a_key_near_its_limit_is_named_before_everything_else() -> None:
    judged = verdict(partition(0, 19 * GIB, largest=KeyPart("tenant=a", 19.5 * GIB)), partition(1, 1 * GIB))
    assert judged.kind == "large key"
    assert "The key tenant=a holds 20 GB of the 20 GB" in judged.sentence


def test_a_growing_key_is_given_the_time_that_it_has_left() -> None:
    growing = GrowingKey("date=2026-11-18", 2 * GIB, bytes_per_second=70 * KIB)
    judged = verdict(*even(), growing=(growing,))
    assert judged.sentence == (
        "The key date=2026-11-18 will reach 20 GB in about 3 days at the present rate of 70 KB/s."
    )


@pytest.mark.parametrize("rate", [0.0, 10.0])
def test_a_key_that_needs_years_to_fill_up_is_no_finding(rate: float) -> None:
    assert verdict(*even(), growing=(GrowingKey("a", 1, bytes_per_second=rate),)).kind == "even"


def test_without_a_limit_of_logical_partitions_no_key_is_too_large() -> None:
    unlimited = replace(CONTAINER, logical_bytes_max=None)
    growing = [GrowingKey("k", 19 * GIB, bytes_per_second=1 * MIB)]
    facts = even(largest=KeyPart("k", 4 * MIB))
    assert judge(facts, growing=growing, surroundings=unlimited).kind == "even"


# --- properties -----------------------------------------------------------------------------------------------------

sizes = st.lists(st.integers(0, 50 * GIB), min_size=1, max_size=30)


def of_sizes(given_sizes: list[int]) -> list[PartitionFacts]:
    return [
        PartitionFacts(str(number), size, items=ITEMS_PER_PARTITION_MIN * 2) for number, size in enumerate(given_sizes)
    ]


@given(sizes)
def test_a_partition_with_more_than_three_times_the_mean_is_never_even(given_sizes: list[int]) -> None:
    skewed = [*given_sizes, 3 * sum(given_sizes) + 1, 0, 0, 0]
    assert max(skewed) * len(skewed) > 3 * sum(skewed)
    assert verdict(*of_sizes(skewed)).kind == "skewed storage"


loads = st.builds(
    PartitionFacts,
    id=st.integers(0, 200).map(str),
    size_bytes=st.none() | st.integers(0, 50 * GIB),
    items=st.integers(0, 10**6),
    request_units=st.floats(0, 1e6),
    throttled=st.integers(0, 100),
    peak_ru_per_second=st.none() | st.floats(0, 1e4),
    largest=st.none() | st.builds(KeyPart, st.sampled_from("abc"), st.floats(0, 21 * GIB)),
    hottest=st.none() | st.builds(KeyPart, st.sampled_from("abc"), st.floats(0, 1e6)),
)
partition_lists = st.lists(loads, min_size=1, max_size=12, unique_by=lambda facts: facts.id)
growths = st.lists(
    st.builds(GrowingKey, st.sampled_from("abc"), st.integers(0, 21 * GIB), st.floats(0, 1e9)),
    max_size=4,
    unique_by=lambda key: key.name,
)


@given(partition_lists, growths, st.randoms(use_true_random=False))
def test_the_order_of_partitions_and_keys_does_not_matter(
    facts: list[PartitionFacts], growing: list[GrowingKey], random: object
) -> None:
    shuffled, growing_again = list(facts), list(growing)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives no narrower type
    random.shuffle(growing_again)  # type: ignore[attr-defined]  # as above
    before = judge(facts, growing=growing, surroundings=CONTAINER)
    assert judge(shuffled, growing=growing_again, surroundings=CONTAINER) == before


@given(sizes, st.integers(1, 1000))
def test_the_skew_does_not_depend_on_the_scale(given_sizes: list[int], factor: int) -> None:
    scaled = [size * factor for size in given_sizes]
    assert verdict(*of_sizes(scaled)).figures.storage_skew == verdict(*of_sizes(given_sizes)).figures.storage_skew


@given(partition_lists, growths)
def test_the_verdict_is_its_most_severe_finding(facts: list[PartitionFacts], growing: list[GrowingKey]) -> None:
    judged = judge(facts, growing=growing, surroundings=CONTAINER)
    severities = [finding.severity for finding in judged.findings]
    assert severities == sorted(severities, reverse=True)
    assert judged.sentence == judged.findings[0].sentence
    assert all(finding.sentence.endswith(".") and finding.advice.endswith(".") for finding in judged.findings)
