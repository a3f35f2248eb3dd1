"""Rules of synthetic keys: what they give, what they refuse, and that all ways to a key agree."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism import keys
from asterism.partitioning.computed_key import ComputedKey, keys_pinned
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.even_draw import draw, shares_of
from asterism.partitioning.key_parts import KeyPart, KeyRuleError
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import initial_map
from asterism.partitioning.rule_words import rule_in_words
from asterism.partitioning.synthetic_key import KeyRule
from asterism.values.identifiers import Epoch, PartitionNumber
from asterism.values.undefined import UNDEFINED

DEFINITION = PartitionKeyDefinition(("/pk",))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
SCALARS = (
    TEXTS | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False, width=32) | st.booleans()
)
COUNTS = st.integers(1, 30)
# Across a leap day, and few enough hours to be counted out.
MOMENTS = st.datetimes(datetime(2024, 2, 20), datetime(2024, 3, 20))
OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def computed(rule: KeyRule) -> ComputedKey:
    return ComputedKey(DEFINITION, {"/pk": rule})


RULES = st.one_of(
    st.builds(lambda separator: keys.concatenate("/a", "/b", separator=separator), st.sampled_from(["-", "", "/"])),
    st.builds(lambda count: keys.hash_suffix("/a", of="/b", count=count), COUNTS),
    st.builds(lambda count: keys.random_suffix("/a", "/b", count=count), COUNTS),
    st.builds(lambda missing: keys.concatenate("/a", missing=missing), st.sampled_from(["refuse", "absent"])),
)


@pytest.mark.parametrize(
    ("rule", "item", "expected"),
    [
        (keys.concatenate("/device", "/year"), {"device": "abc-123", "year": 2018}, "abc-123-2018"),
        (keys.concatenate("/a/b", "/c", separator="|"), {"a": {"b": True}, "c": 1.0}, "true|1"),
        (keys.concatenate(KeyPart("/n", digits=5)), {"n": 42}, "00042"),
        (keys.concatenate(KeyPart("/n", decimals=2)), {"n": 1.005}, "1.00"),
        (keys.concatenate("/n"), {"n": 1e21}, "1e+21"),
        (keys.concatenate("/n"), {"n": 2**53 + 1}, "9007199254740992"),
        (keys.time_bucket("/at", "day"), {"at": "2026-01-31T23:30:00-05:00"}, "2026-02-01"),
        (keys.time_bucket("/at", "hour"), {"at": "2026-01-31T23:30:00Z"}, "2026-01-31T23"),
        (keys.time_bucket("/at", "month"), {"at": 1_700_000_000}, "2023-11"),
        (keys.time_bucket("/at", "day", unit="ms"), {"at": 1_700_000_000_000}, "2023-11-14"),
        (keys.time_bucket("/at", "month", format="%m/%Y 100%%"), {"at": "2026-01-31"}, "01/2026 100%"),
        (keys.concatenate(KeyPart("/at", format="%Y%m%d")), {"at": "2026-01-31 10:00"}, "20260131"),
        # mmh3.hash("WDB123", signed=False) % 400 + 1
        (keys.hash_suffix("/date", of="/vin", count=400), {"date": "2018", "vin": "WDB123"}, "2018.289"),
    ],
)
def test_a_rule_gives_the_key_that_it_declares(rule: KeyRule, item: dict[str, Any], expected: str) -> None:
    assert rule.keys_of(item) == (expected,)
    assert rule.accepts(item, expected)
    assert KeyRule.parse(rule.to_json()) == rule


@given(RULES, st.fixed_dictionaries({"a": SCALARS, "b": SCALARS}))
def test_every_way_to_a_key_agrees(rule: KeyRule, item: dict[str, Any]) -> None:
    key = computed(rule)
    candidates = key.keys_of(item)
    assert [value for (value,) in candidates] == list(rule.keys_of(item))
    assert all(key.accepts(item, candidate) for candidate in candidates)
    for candidate in candidates[:3]:
        filled = key.fill(item, candidate)
        assert key.keys_of(filled) == [candidate]
        assert filled == {**item, "pk": candidate[0]}
        # A key names itself.
        assert candidate in key.keys_named(candidate)
    known = {part.names: part.value_in(item) for part in rule.source_parts}
    assert key.keys_of_known(known) == list(candidates)
    assert key.keys_named([{"a": item["a"], "b": item["b"]}]) == list(candidates)
    named = [part.value_in(item) for part in rule.source_parts]
    by_sources = key.keys_named(named) if len(named) > 1 else candidates
    assert by_sources == list(candidates)


@given(RULES, st.fixed_dictionaries({"a": SCALARS, "b": SCALARS}), st.integers(0, 10**6))
def test_an_application_computes_the_same_key_as_the_server(rule: KeyRule, item: dict[str, Any], number: int) -> None:
    filled = keys.fill(item, {"/pk": rule}, draw=lambda count: number % count)
    assert (filled["pk"],) in computed(rule).keys_of(item)
    assert computed(rule).keys_of(filled) == [(filled["pk"],)]
    assert keys.fill(filled, {"/pk": rule}) == filled


def test_the_library_needs_the_standard_library_and_mmh3_alone() -> None:
    script = (
        "import sys; import asterism.keys; "
        "print(sorted({name.split('.')[0] for name, module in sys.modules.items() if getattr(module, '__file__', None)}"
        " - sys.stdlib_module_names - {'asterism', '_distutils_hack', 'sitecustomize'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['mmh3']"


@pytest.mark.parametrize(
    "given_rule",
    [
        None,
        {},
        {"parts": []},
        {"parts": "/a"},
        {"parts": ["a"]},
        {"parts": ["/a", "/a"]},
        {"parts": ["/_ts"]},
        {"parts": [{"path": "/a", "bucket": "week"}]},
        {"parts": [{"path": "/a", "digits": 3, "decimals": 1}]},
        {"parts": [{"path": "/a", "digits": 0}]},
        {"parts": [{"path": "/a", "unit": "ms"}]},
        {"parts": [{"path": "/a", "format": "%Q"}]},
        {"parts": ["/a"], "separator": 1},
        {"parts": ["/a"], "missing": "ignore"},
        {"parts": ["/a"], "typo": 1},
        {"parts": ["/a"], "suffix": {"kind": "random"}},
        {"parts": ["/a"], "suffix": {"kind": "random", "count": 0}},
        {"parts": ["/a"], "suffix": {"kind": "random", "count": 1_000_000}},
        {"parts": ["/a"], "suffix": {"kind": "random", "count": True}},
        {"parts": ["/a"], "suffix": {"kind": "random", "count": 2, "path": "/b"}},
        {"parts": ["/a"], "suffix": {"kind": "hash", "count": 2}},
        {"parts": ["/a"], "suffix": {"kind": "hash", "count": 2, "path": "/b", "separator": "1"}},
        {"parts": ["/a"], "suffix": {"kind": "sorted", "count": 2}},
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_a_sentence(given_rule: object) -> None:
    with pytest.raises(KeyRuleError, match=r"\w{3,}.*\.$"):
        KeyRule.parse(given_rule)


@pytest.mark.parametrize(
    "item",
    [{}, {"a": None}, {"a": {"b": 1}}, {"a": [1]}, {"a": "\ud800"}],
)
def test_an_item_without_a_sound_source_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(KeyRuleError):
        keys.hash_suffix("/date", of="/a", count=5).keys_of({"date": "d", **item})


def test_an_item_without_a_source_may_count_as_one_without_a_key() -> None:
    rule = keys.concatenate("/a", "/b", missing="absent")
    assert rule.keys_of({"a": 1}) == ()
    assert computed(rule).keys_of({"a": 1}) == [(UNDEFINED,)]
    assert rule.accepts({"a": 1}, UNDEFINED)
    assert not rule.accepts({"a": 1, "b": 2}, UNDEFINED)
    assert keys.fill({"a": 1}, {"/pk": rule}) == {"a": 1}


def test_a_raised_count_keeps_the_earlier_keys() -> None:
    before = keys.hash_suffix("/a", of="/b", count=10)
    after = keys.hash_suffix("/a", of="/b", count=40).raised_from(before)
    items = [{"a": "x", "b": number} for number in range(200)]
    assert all(set(before.keys_of(item)) <= set(after.keys_of(item)) for item in items)
    assert all(len(after.keys_of(item)) <= 2 for item in items)
    again = keys.hash_suffix("/a", of="/b", count=50).raised_from(after)
    assert again.suffix is not None
    assert again.suffix.earlier_counts == (40, 10)
    assert KeyRule.parse(again.to_json()) == again
    drawn = keys.random_suffix("/a", count=40).raised_from(keys.random_suffix("/a", count=10))
    assert set(keys.random_suffix("/a", count=10).keys_of({"a": 1})) <= set(drawn.keys_of({"a": 1}))
    for lower in (keys.hash_suffix("/a", of="/b", count=9), keys.hash_suffix("/a", of="/c", count=20), drawn):
        with pytest.raises(KeyRuleError):
            lower.raised_from(before)


def test_a_named_value_without_its_suffix_stands_for_all_suffixes() -> None:
    key = computed(keys.hash_suffix("/a", of="/b", count=3))
    assert key.keys_named(["x"]) == [("x.1",), ("x.2",), ("x.3",)]
    assert key.keys_named(["x.2"]) == [("x.2",)]
    assert key.keys_named(["x.4"]) == [("x.4.1",), ("x.4.2",), ("x.4.3",)]
    assert len(key.keys_named(["x", 5])) == 1
    assert key.keys_named([{}]) == [(UNDEFINED,)]


@given(MOMENTS, MOMENTS, MOMENTS, OFFSETS, st.sampled_from(["hour", "day", "month"]), st.booleans())
def test_a_time_stamp_between_two_texts_is_in_one_of_the_buckets_between_them(
    first: datetime, second: datetime, moment: datetime, offset: timezone, bucket: Any, has_time: bool
) -> None:
    part = KeyPart("/at", bucket=bucket)
    low, high = sorted(each.isoformat()[: None if has_time else 10] for each in (first, second))
    value = moment.replace(tzinfo=offset).isoformat()
    texts = part.texts_between(low, high, count_max=10**6)
    assert texts is not None
    assert not low <= value <= high or part.text(value) in texts


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_number_between_two_numbers_is_in_one_of_the_buckets_between_them(low: int, width: int, place: int) -> None:
    part = KeyPart("/at", bucket="hour")
    texts = part.texts_between(low, low + width, count_max=10**6)
    assert texts is not None
    assert part.text(low + min(place, width)) in texts
    assert len(texts) <= width // 3600 + 2


def test_too_many_buckets_are_not_counted_out() -> None:
    assert KeyPart("/at", bucket="hour").texts_between("2000-01-01", "2026-01-01", count_max=1000) is None
    assert KeyPart("/at", bucket="hour").texts_between("soon", "later", count_max=1000) is None
    assert KeyPart("/at").texts_between("a", "b", count_max=1000) is None


Pins = dict[tuple[tuple[str, ...], ...], list[tuple[object, ...]] | None]


def test_a_filter_on_sources_leaves_their_keys() -> None:
    key = computed(keys.hash_suffix("/a", of="/b", count=3, missing="absent"))
    own, sources = (("pk",),), (("a",), ("b",))

    def pinned(pins: Pins) -> object:
        return keys_pinned(own, key, lambda paths: pins.get(paths), dict)

    assert pinned({sources: [("x", 1)]}) == list(key.keys_of({"a": "x", "b": 1}))
    # Without the source of the suffix items may lack it, and then have no key.
    assert pinned({sources: [("x",)]}) == [("x.1",), ("x.2",), ("x.3",), (UNDEFINED,)]
    assert pinned({own: [("x.2",)], sources: [("x",)]}) == [("x.2",)]
    assert pinned({}) is None
    assert pinned({sources: []}) == []


def test_a_draw_gives_every_physical_partition_about_equally_many_items() -> None:
    partition_map = initial_map(DEFINITION, [PartitionNumber(number) for number in range(20)], epoch=Epoch(1))
    for day in ("2026-01-01", "2026-06-15", "2026-12-31"):
        values = keys.random_suffix("/date", count=400).keys_of({"date": day})
        counts = dict.fromkeys((partition.id for partition in partition_map.ranges), 0)
        suffixes = dict.fromkeys(values, 0)
        for number in range(20_000):
            value = values[draw(DEFINITION, values, str(number).encode())]
            counts[partition_map.find(storage_point(DEFINITION, (value,))).id] += 1
            suffixes[value] += 1
        assert max(counts.values()) <= 1.3 * 20_000 / 20
        assert max(suffixes.values()) <= 4 * 20_000 / 400
        assert min(suffixes.values()) > 0


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=30, unique=True))
def test_the_shares_of_a_draw_are_positive_and_together_one(places: list[float]) -> None:
    shares = shares_of(places)
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0


def test_a_draw_depends_on_the_id_and_the_values_alone() -> None:
    key = computed(keys.random_suffix("/a", count=40))
    item = {"a": "x"}
    drawn = [key.keys_of_new(key.keys_of(item), str(number).encode()) for number in range(50)]
    again = computed(keys.random_suffix("/a", count=40))
    assert drawn == [again.keys_of_new(again.keys_of(item), str(number).encode()) for number in range(50)]
    assert len({key for (key,) in drawn}) > 20
    raised = computed(keys.random_suffix("/a", count=60).raised_from(keys.random_suffix("/a", count=40)))
    for number, (earlier,) in enumerate(drawn):
        assert earlier in raised.keys_of_new(raised.keys_of(item), str(number).encode())


def test_rules_cannot_name_each_other() -> None:
    two = PartitionKeyDefinition.parse({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2})
    with pytest.raises(KeyRuleError, match="circle"):
        ComputedKey.parse(two, {"/a": {"parts": ["/b"]}, "/b": {"parts": ["/a"]}})
    refused: list[object] = [
        {"/pk": {"parts": ["/pk"]}},
        {"/pk": {"parts": ["/pk/inner"]}},
        {"/x": {"parts": ["/a"]}},
        {},
        [],
    ]
    for rules in refused:
        with pytest.raises(KeyRuleError):
            ComputedKey.parse(DEFINITION, rules)


def test_a_rule_is_said_in_words() -> None:
    rule = keys.random_suffix("/deviceId", KeyPart("/at", bucket="day"), count=400)
    assert rule_in_words(rule) == "deviceId + '-' + day of at, then one of 400 suffixes by a draw"


def test_the_moment_of_a_text_without_an_offset_is_in_utc() -> None:
    assert KeyPart("/at", bucket="hour").moment_of("2026-01-31T10:30:00") == datetime(2026, 1, 31, 10, tzinfo=UTC)
