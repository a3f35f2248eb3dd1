from __future__ import annotations

import math
from typing import Any

import mmh3
import pytest
from azure.cosmos import PartitionKey as ClientDefinition
from azure.cosmos.partition_key import _Undefined as ClientUndefined
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import MalformedRequest, PartitionKeyMismatch
from asterism.partitioning.effective_key import (
    decode_hash,
    effective_key,
    encode_number,
    from_text,
    prefix_range,
    storage_point,
    to_text,
)
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.values.undefined import UNDEFINED

VERSION_1 = PartitionKeyDefinition(paths=("/pk",), version=1)
VERSION_2 = PartitionKeyDefinition(paths=("/pk",))
LEVELS = PartitionKeyDefinition(paths=("/a", "/b", "/c"), kind=PartitionKeyKind.MULTI_HASH)
FIXED = PartitionKeyDefinition(paths=("/_partitionKey",), system_key=True)

CLIENT_V1 = ClientDefinition(path="/pk", kind="Hash", version=1)
CLIENT_V2 = ClientDefinition(path="/pk", kind="Hash", version=2)
CLIENT_LEVELS = ClientDefinition(path=["/a", "/b", "/c"], kind="MultiHash")

texts = st.text(st.characters(codec="utf-8"), max_size=130)
# The client hashes -0.0 apart from 0.0; here equal numbers are one logical partition.
numbers = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
components = st.one_of(texts, numbers, st.integers(-(2**53), 2**53), st.booleans(), st.none(), st.just(UNDEFINED))
# Values that the client's version 1 hashes correctly: no null, no negative or large integers.
components_v1 = st.one_of(texts, numbers, st.integers(0, 2**32 - 1), st.booleans(), st.just(UNDEFINED))


def client_text(definition: ClientDefinition, *key: Any) -> str:
    client_key = [{UNDEFINED: ClientUndefined()}.get(component, component) for component in key]
    return str(definition._get_effective_partition_key_string(client_key)).upper()


@settings(max_examples=150, deadline=None)
@given(components)
def test_version_2_agrees_with_the_client(component: Any) -> None:
    assert to_text(effective_key(VERSION_2, (component,))) == client_text(CLIENT_V2, component)


@settings(max_examples=150, deadline=None)
@given(components_v1)
def test_version_1_agrees_with_the_client_where_the_client_is_right(component: Any) -> None:
    assert to_text(effective_key(VERSION_1, (component,))) == client_text(CLIENT_V1, component)


@settings(max_examples=60, deadline=None)
@given(st.lists(components, min_size=1, max_size=3))
def test_hierarchical_keys_and_their_prefixes_agree_with_the_client(key: list[Any]) -> None:
    assert to_text(effective_key(LEVELS, tuple(key))) == client_text(CLIENT_LEVELS, *key)


@pytest.mark.parametrize(
    ("component", "text"),
    [
        ("redmond", "22E342F38A486A088463DFF7838A5963"),
        (5.0, "19C08621B135968252FB34B4CF66F811"),
        (5, "19C08621B135968252FB34B4CF66F811"),
        (True, "0E711127C5B5A8E4726AC6DD306A3E59"),
        (None, "378867E4430E67857ACE5C908374FE16"),
        (UNDEFINED, "11622DAA78F835834610ABE56EFF5CB5"),
    ],
)
def test_version_2_gives_the_known_points(component: Any, text: str) -> None:
    assert to_text(effective_key(VERSION_2, (component,))) == text


def test_version_1_writes_the_hash_and_then_the_value() -> None:
    point = effective_key(VERSION_1, (5.0,))
    assert point.endswith(bytes.fromhex("05C014"))
    assert decode_hash(point) == mmh3.hash(bytes.fromhex("050000000000001440"), 0, signed=False)


@pytest.mark.parametrize(
    ("component", "hashed", "encoded"),
    [
        (None, "01", "01"),
        (-1, "05000000000000F0BF", "054010"),
        (2**40, "050000000000007042", "05C270"),
    ],
)
def test_version_1_is_right_where_the_client_is_not(component: Any, hashed: str, encoded: str) -> None:
    point = effective_key(VERSION_1, (component,))
    front = encode_number(float(mmh3.hash(bytes.fromhex(hashed), 0, signed=False)))
    assert to_text(point[len(front) :]) == encoded
    assert point.startswith(front)


def test_version_1_cuts_long_strings() -> None:
    assert effective_key(VERSION_1, ("x" * 100,)) == effective_key(VERSION_1, ("x" * 100 + "more",))
    assert effective_key(VERSION_1, ("ü" * 60,))[-101:] == bytes(byte + 1 for byte in ("ü" * 60).encode()[:101])


def test_equal_numbers_have_one_point() -> None:
    assert effective_key(VERSION_2, (0.0,)) == effective_key(VERSION_2, (-0.0,)) == effective_key(VERSION_2, (0,))
    assert effective_key(VERSION_2, (1,)) != effective_key(VERSION_2, (True,))


def test_not_a_number_is_hashed_with_the_services_bit_pattern() -> None:
    digest = mmh3.mmh3_x64_128_digest(bytes.fromhex("05000000000000F8FF"))[::-1]
    assert effective_key(VERSION_2, (math.nan,)) == bytes([digest[0] & 0x3F]) + digest[1:]


def test_a_fixed_container_has_one_point() -> None:
    assert effective_key(FIXED, ()) == b""


def test_long_version_1_strings_share_a_place_on_the_line_but_not_a_stored_key() -> None:
    first, second = ("x" * 100 + "1",), ("x" * 100 + "2",)
    assert effective_key(VERSION_1, first) == effective_key(VERSION_1, second)
    assert storage_point(VERSION_1, first) != storage_point(VERSION_1, second)
    assert storage_point(VERSION_1, first).startswith(effective_key(VERSION_1, first))
    assert storage_point(VERSION_2, first) == effective_key(VERSION_2, first)


@pytest.mark.parametrize("key", [(), ("a", "b")])
def test_a_key_of_the_wrong_length_has_no_point(key: tuple[str, ...]) -> None:
    with pytest.raises(PartitionKeyMismatch):
        effective_key(VERSION_2, key)


@settings(max_examples=60)
@given(components, components, components)
def test_a_prefix_range_holds_exactly_the_keys_below_the_prefix(tenant: Any, user: Any, session: Any) -> None:
    below = prefix_range(LEVELS, (tenant, user))
    assert below.contains(effective_key(LEVELS, (tenant, user, session)))
    assert not below.contains(effective_key(LEVELS, (tenant, "elsewhere" + repr(user), session)))


def test_only_hierarchical_keys_have_prefix_ranges() -> None:
    with pytest.raises(PartitionKeyMismatch):
        prefix_range(VERSION_2, ("a",))


@given(components)
def test_version_2_points_stay_below_40(component: Any) -> None:
    point = effective_key(VERSION_2, (component,))
    assert len(point) == 16
    assert point[0] < 0x40


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_points_sort_as_their_texts_do(left: bytes, right: bytes) -> None:
    assert (left < right) == (to_text(left) < to_text(right))
    assert from_text(to_text(left)) == left


@given(numbers, numbers)
def test_encoded_numbers_sort_as_the_numbers_do(left: float, right: float) -> None:
    assert (left < right) == (encode_number(left) < encode_number(right))


@given(st.integers(0, 2**32 - 1), st.binary(max_size=5))
def test_the_hash_of_a_version_1_point_can_be_read_back(hashed: int, rest: bytes) -> None:
    assert decode_hash(encode_number(float(hashed)) + rest) == hashed


@pytest.mark.parametrize("point", [b"", b"\xff", b"\x05", b"\x05\xc0", b"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"])
def test_a_point_without_a_whole_hash_has_none(point: bytes) -> None:
    assert decode_hash(point) is None


@given(st.binary(min_size=1, max_size=4), st.sampled_from("0123456789ABCDEF"))
def test_a_text_of_odd_length_divides_whole_points_as_the_text_does(point: bytes, digit: str) -> None:
    text = to_text(point)[:-1] + digit
    odd = text[: len(text) - 1]
    assert (to_text(point) < odd) == (point < from_text(odd))


@pytest.mark.parametrize("text", ["G0", "0x", " 00", "00 ", "0 0 ", "ff\n0", "\u0661\u0661", "-1"])
def test_a_text_that_is_not_hexadecimal_is_malformed(text: str) -> None:
    with pytest.raises(MalformedRequest):
        from_text(text)


def test_lower_case_text_is_understood() -> None:
    assert from_text("ff") == b"\xff"
