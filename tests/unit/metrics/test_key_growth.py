"""The growth of logical partitions out of a few measured sizes."""

from __future__ import annotations

from asterism.throughput.key_growth import FORGET_SECONDS, KEYS_MAX, SAMPLES_MAX, KeyGrowth, KeyGrowths

SPACE = b"space"


def test_keys_that_grow_come_with_their_speed_and_the_fastest_first() -> None:
    growths = KeyGrowths()
    for minute in range(3):
        growths.add(SPACE, b"slow", 1000 + 60 * minute, now=60.0 * minute)
        growths.add(SPACE, b"fast", 600 * minute, now=60.0 * minute)
        growths.add(SPACE, b"still", 77, now=60.0 * minute)
        growths.add(SPACE, b"shrinks", 1000 - minute, now=60.0 * minute)
    assert growths.of_keyspace(SPACE, now=120.0) == [KeyGrowth(b"fast", 1200, 10.0), KeyGrowth(b"slow", 1120, 1.0)]


def test_a_single_measurement_says_nothing_about_growth() -> None:
    growths = KeyGrowths()
    growths.add(SPACE, b"key", 1000, now=0.0)
    growths.add(SPACE, b"twice at once", 1000, now=0.0)
    growths.add(SPACE, b"twice at once", 2000, now=0.0)
    assert growths.of_keyspace(SPACE, now=1.0) == []


def test_growth_is_that_of_the_last_measurements() -> None:
    growths = KeyGrowths()
    for minute in range(SAMPLES_MAX):
        growths.add(SPACE, b"key", 10**9 * minute, now=60.0 * minute)
    last = 10**9 * (SAMPLES_MAX - 1)
    for minute in range(SAMPLES_MAX, 2 * SAMPLES_MAX):
        growths.add(SPACE, b"key", last, now=60.0 * minute)
    assert growths.of_keyspace(SPACE, now=60.0 * 2 * SAMPLES_MAX) == []


def test_a_key_that_is_no_longer_measured_does_not_count_as_growing() -> None:
    growths = KeyGrowths()
    growths.add(SPACE, b"key", 1, now=0.0)
    growths.add(SPACE, b"key", 2, now=60.0)
    assert growths.of_keyspace(SPACE, now=60.0 + FORGET_SECONDS) == []
    growths.keep_only({SPACE}, now=60.0 + FORGET_SECONDS)
    assert growths.keys == 0


def test_memory_is_bounded_by_keyspaces_that_exist_and_by_keys_of_each() -> None:
    growths = KeyGrowths()
    for number in range(1000):
        growths.add(SPACE, str(number).encode(), 1, now=float(number) / 10)
        growths.add(str(number).encode(), b"key", 1, now=float(number) / 10)
    growths.keep_only({SPACE}, now=100.0)
    assert growths.keys == KEYS_MAX
