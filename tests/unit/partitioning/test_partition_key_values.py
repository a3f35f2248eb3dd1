from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest, PartitionKeyMismatch
from asterism.partitioning.effective_key import effective_key, storage_point
from asterism.partitioning.partition_key import (
    SYSTEM_KEY,
    PartitionKeyDefinition,
    PartitionKeyKind,
    extract,
    header_agrees_with_item,
    is_full,
    parse_header,
    same_component,
)
from asterism.values.undefined import UNDEFINED

SINGLE = PartitionKeyDefinition(paths=("/pk",))
NESTED = PartitionKeyDefinition(paths=("/a/b",))
VERSION_1 = PartitionKeyDefinition(paths=("/pk",), version=1)
LEVELS = PartitionKeyDefinition(paths=("/tenant", "/user/id", "/session"), kind=PartitionKeyKind.MULTI_HASH)
FIXED = PartitionKeyDefinition(paths=("/_partitionKey",), system_key=True)

json_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=200),
)


# --- definitions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"version": None}, {"kind": "Hash"}])
def test_a_definition_without_version_is_version_1(more: dict[str, object]) -> None:
    assert PartitionKeyDefinition.parse({"paths": ["/pk"], **more}).version == 1


def test_a_hierarchical_definition_without_version_is_version_2() -> None:
    assert PartitionKeyDefinition.parse({"paths": ["/a", "/b"], "kind": "MultiHash"}).version == 2


@pytest.mark.parametrize("version", [1, 2])
def test_a_version_is_kept_when_asked_for(version: int) -> None:
    assert PartitionKeyDefinition.parse({"paths": ["/pk"], "kind": "Hash", "version": version}).version == version


@pytest.mark.parametrize("definition", [SINGLE, NESTED, VERSION_1, LEVELS, FIXED])
def test_a_definition_survives_its_json(definition: PartitionKeyDefinition) -> None:
    assert PartitionKeyDefinition.parse(json.loads(json.dumps(definition.to_json()))) == definition
    assert PartitionKeyDefinition.from_record(json.loads(json.dumps(definition.to_record()))) == definition


def test_a_stored_definition_keeps_a_path_that_is_now_refused() -> None:
    stored = {"paths": ["/id ds"], "kind": "Hash", "version": 2}
    assert PartitionKeyDefinition.from_record(stored).segments == (("id ds",),)


def test_an_older_stored_version_1_definition_keeps_its_points() -> None:
    before = PartitionKeyDefinition.from_record({"paths": ["/pk"], "kind": "Hash", "version": 1})
    assert PartitionKeyDefinition.from_record(before.to_record()) == before
    exactly = ("x" * 100,)
    assert storage_point(before, exactly) == effective_key(before, exactly)
    assert storage_point(before, ("x" * 101,)).startswith(effective_key(before, exactly))


@pytest.mark.parametrize("text", ["x" * 99, "x" * 100, "x" * 101, "é" * 50, "é" * 60, "é" * 100, "é" * 101])
@pytest.mark.parametrize("other", ["x" * 98, "x" * 102, "é" * 49, "é" * 99, "é" * 102, "x" * 100 + "y"])
def test_no_stored_point_of_a_version_1_key_begins_with_another(text: str, other: str) -> None:
    point, other_point = storage_point(VERSION_1, (text,)), storage_point(VERSION_1, (other,))
    assert not point.startswith(other_point)
    assert not other_point.startswith(point)


def test_a_fixed_container_says_so_in_json() -> None:
    assert FIXED.to_json()["systemKey"] is True


@pytest.mark.parametrize(
    ("definition", "word"),
    [
        (None, "object"),
        ([], "object"),
        ({}, "paths"),
        ({"paths": []}, "paths"),
        ({"paths": "/pk"}, "paths"),
        ({"paths": [1]}, "string"),
        ({"paths": ["pk"]}, "only valid characters"),
        ({"paths": ["/a", "/b"]}, "Too many partition key paths"),
        ({"paths": ["/a"], "kind": "Range"}, "kind"),
        ({"paths": ["/a"], "version": 3}, "version"),
        ({"paths": ["/a"], "version": True}, "version"),
        ({"paths": ["/a"], "version": "2"}, "version"),
        ({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 1}, "version 2"),
        ({"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash"}, "Too many partition key paths"),
        ({"paths": ["/a", '/"a"'], "kind": "MultiHash"}, "twice"),
        ({"paths": ["/a"], "systemKey": 1}, "systemKey"),
        ({"paths": ["/a"], "systemKey": True, "kind": "MultiHash"}, "MultiHash"),
    ],
)
def test_a_definition_the_service_would_refuse_is_refused_with_a_reason(definition: object, word: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        PartitionKeyDefinition.parse(definition)
    assert word in refused.value.reason


# --- extraction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["x", "", 1, 1.5, True, False, None])
def test_a_scalar_at_the_path_is_the_key(value: Any) -> None:
    assert extract(SINGLE, {"id": "1", "pk": value}) == (value,)
    assert extract(NESTED, {"a": {"b": value}}) == (value,)


@pytest.mark.parametrize("item", [{}, {"a": None}, {"a": 1}, {"a": {}}, {"a": {"c": 1}}, {"a": [1]}])
def test_a_path_that_is_absent_from_the_item_is_undefined(item: dict[str, Any]) -> None:
    assert extract(NESTED, item) == (UNDEFINED,)
    assert extract(SINGLE, item) == (UNDEFINED,)


def test_a_hierarchical_key_has_a_component_for_each_path() -> None:
    assert extract(LEVELS, {"tenant": "t", "user": {"id": 7}}) == ("t", 7, UNDEFINED)


def test_every_item_of_a_fixed_container_has_the_system_key() -> None:
    assert extract(FIXED, {"_partitionKey": "x"}) == SYSTEM_KEY


@pytest.mark.parametrize("value", [{}, {"x": 1}, [], ["x"]])
def test_an_object_or_array_at_the_path_is_not_a_key_value(value: Any) -> None:
    assert extract(SINGLE, {"pk": value}) == (UNDEFINED,)
    assert extract(LEVELS, {"tenant": value}) == (UNDEFINED, UNDEFINED, UNDEFINED)


@pytest.mark.parametrize("value", ["x" * 2049, "ü" * 1025, 10**400])
def test_a_value_that_cannot_be_a_key_is_refused(value: Any) -> None:
    with pytest.raises(MalformedRequest):
        extract(SINGLE, {"pk": value})
    with pytest.raises(MalformedRequest):
        extract(LEVELS, {"tenant": value})


@pytest.mark.parametrize("value", ["x" * 2048, "ü" * 1024, "x" * 101])
@pytest.mark.parametrize("definition", [SINGLE, VERSION_1])
def test_a_value_of_up_to_2048_bytes_is_a_key(definition: PartitionKeyDefinition, value: str) -> None:
    assert extract(definition, {"pk": value}) == (value,)
    assert parse_header(json.dumps([value]), definition) == (value,)


# --- headers --------------------------------------------------------------------------------------------------------


@given(json_scalars)
def test_header_and_extraction_agree(value: Any) -> None:
    header_key = parse_header(json.dumps([value]), SINGLE)
    item_key = extract(SINGLE, {"pk": value})
    assert header_key == item_key
    assert type(header_key[0]) is type(item_key[0])
    assert header_agrees_with_item(header_key, item_key)


def test_an_empty_object_in_the_header_is_undefined() -> None:
    assert parse_header("[{}]", SINGLE) == (UNDEFINED,)
    assert parse_header('["t",{},null]', LEVELS) == ("t", UNDEFINED, None)


@pytest.mark.parametrize("text", ["[]", "[{}]"])
def test_a_fixed_container_accepts_only_the_empty_key(text: str) -> None:
    assert parse_header(text, FIXED) == SYSTEM_KEY
    with pytest.raises(PartitionKeyMismatch):
        parse_header('["x"]', FIXED)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        '"x"',
        "{}",
        "null",
        "[",
        '["a"',
        "[[]]",
        '[["a"]]',
        '[{"a":1}]',
        "[NaN]",
        "[Infinity]",
        "[1e400]",
        "[" * 100_000,
        "[" + "9" * 5000 + "]",
        '["\\ud800"]',
        '["' + "x" * 2049 + '"]',
    ],
)
def test_a_header_that_is_not_a_list_of_scalars_is_malformed(text: str) -> None:
    with pytest.raises(MalformedRequest):
        parse_header(text, SINGLE)


@pytest.mark.parametrize(
    ("definition", "text"), [(SINGLE, '["a","b"]'), (SINGLE, "[]"), (LEVELS, "[1,2,3,4]"), (LEVELS, "[]")]
)
def test_a_header_with_another_number_of_components_does_not_fit(definition: PartitionKeyDefinition, text: str) -> None:
    with pytest.raises(PartitionKeyMismatch):
        parse_header(text, definition)


def test_only_a_hierarchical_key_has_prefixes() -> None:
    prefix = parse_header('["t",1]', LEVELS)
    assert not is_full(LEVELS, prefix)
    assert is_full(LEVELS, parse_header('["t",1,true]', LEVELS))
    assert is_full(SINGLE, parse_header('["t"]', SINGLE))
    assert is_full(FIXED, SYSTEM_KEY)


# --- equality -------------------------------------------------------------------------------------------------------


def test_numbers_compare_as_doubles_and_booleans_are_not_numbers() -> None:
    assert same_component(1, 1.0)
    assert not same_component(1, True)
    assert not same_component(0.0, False)
    assert not same_component(None, UNDEFINED)
    assert not same_component("1", 1)


def test_integers_that_are_one_double_are_one_key() -> None:
    assert (
        extract(SINGLE, {"pk": 2**53 + 1})
        == extract(SINGLE, {"pk": float(2**53)})
        == parse_header(f"[{2**53}]", SINGLE)
    )


def test_null_in_the_header_is_not_an_absent_value() -> None:
    assert not header_agrees_with_item(("t", None, 1), ("t", UNDEFINED, 1))
    assert not header_agrees_with_item(("t", UNDEFINED, 1), ("t", None, 1))
    assert not header_agrees_with_item((None,), (UNDEFINED,))


def test_another_value_or_a_prefix_does_not_agree_with_the_item() -> None:
    assert not header_agrees_with_item(("a",), ("b",))
    assert not header_agrees_with_item((True,), (1,))
    assert not header_agrees_with_item(("t",), ("t", 1, 2))
    assert header_agrees_with_item(SYSTEM_KEY, SYSTEM_KEY)
