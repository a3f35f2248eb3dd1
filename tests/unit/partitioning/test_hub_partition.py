"""The partition of a key in a hub, against the numbers that the service's clients compute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.partitioning.hub_partition import hub_key_hash, hub_partition

VECTORS = [
    ("7", -15263, (1, 2, 3, 6, 31)),
    ("alphabet", -23478, (0, 0, 2, 4, 22)),
    ("TheBestParitionEver", -29062, (0, 1, 2, 0, 6)),
    ("abc-123", 9581, (1, 2, 1, 0, 13)),
    ("vehicle-0042", -21171, (1, 0, 3, 7, 19)),
    ("a", -16220, (0, 2, 0, 6, 28)),
    ("abcdefghijkl", -2373, (1, 0, 1, 8, 5)),
    ("abcdefghijklm", -31855, (1, 1, 3, 10, 15)),
    ("日本", 27948, (0, 0, 0, 8, 12)),
    ("", 0, (0, 0, 0, 0, 0)),
]
COUNTS = (2, 3, 4, 11, 32)


@pytest.mark.parametrize(("key", "hashed", "_partitions"), VECTORS)
def test_a_key_has_the_hash_of_the_service(key: str, hashed: int, _partitions: tuple[int, ...]) -> None:
    assert hub_key_hash(key) == hashed


@pytest.mark.parametrize(("key", "_hashed", "partitions"), VECTORS)
def test_a_key_lies_in_the_partition_of_the_service(key: str, _hashed: int, partitions: tuple[int, ...]) -> None:
    assert tuple(hub_partition(key, count) for count in COUNTS) == partitions


@given(st.text(max_size=80), st.integers(1, 2000))
def test_every_key_lies_in_a_partition(key: str, count: int) -> None:
    assert -(2**15) <= hub_key_hash(key) < 2**15
    assert 0 <= hub_partition(key, count) < count
