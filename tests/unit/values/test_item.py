from __future__ import annotations

import pytest

from asterism.errors import MalformedRequest, TooLarge
from asterism.limits import ITEM_NESTING_LEVELS_MAX
from asterism.values.item import parse_item, validate_item_id, validate_resource_name
from asterism.values.undefined import UNDEFINED


def nested_item(levels: int) -> bytes:
    return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)


def test_an_object_is_an_item() -> None:
    assert parse_item(b'{"id": "1", "tags": ["x"]}', bytes_max=100) == {"id": "1", "tags": ["x"]}


@pytest.mark.parametrize("body", [b"[]", b"1", b'"text"', b"null", b"", b"{"])
def test_other_json_is_not_an_item(body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        parse_item(body, bytes_max=100)


def test_an_item_may_be_as_large_as_the_limit_and_no_larger() -> None:
    body = b'{"id":"1"}'
    assert parse_item(body, bytes_max=len(body)) == {"id": "1"}
    with pytest.raises(TooLarge) as refusal:
        parse_item(body, bytes_max=len(body) - 1)
    assert (refusal.value.what, refusal.value.bytes_max) == ("item", len(body) - 1)


def test_an_item_may_be_as_deep_as_the_limit_and_no_deeper() -> None:
    parse_item(nested_item(ITEM_NESTING_LEVELS_MAX), bytes_max=10_000)
    with pytest.raises(MalformedRequest, match="nested"):
        parse_item(nested_item(ITEM_NESTING_LEVELS_MAX + 1), bytes_max=10_000)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    body = b'{"a":[' + b",".join([b'{"b":[]}'] * 500) + b"]}"
    assert len(parse_item(body, bytes_max=10_000)) == 1


def test_brackets_within_strings_are_not_deep() -> None:
    assert parse_item(b'{"a":"' + b"[{" * 500 + b'"}', bytes_max=10_000) == {"a": "[{" * 500}


@pytest.mark.parametrize("name", ["a", " leading", "हिन्दी", "!@$%^&*()-~`'_[]{}|;:,.<>", "a b", "x" * 255])
def test_names_may_have_all_other_characters(name: str) -> None:
    assert validate_item_id(name) == name
    assert validate_resource_name(name) == name


@pytest.mark.parametrize("name", ["a/b", "a\\b", "a#b", ".", ".."])
def test_names_that_do_not_fit_in_a_path_are_refused(name: str) -> None:
    with pytest.raises(MalformedRequest):
        validate_item_id(name)
    with pytest.raises(MalformedRequest):
        validate_resource_name(name)


@pytest.mark.parametrize("name", ["a?b", "tab\t", "a\rb", "a\nb", "a\n", "nul\x00", "space ", "\x7f", " "])
def test_an_item_id_may_have_characters_that_other_names_may_not(name: str) -> None:
    assert validate_item_id(name) == name
    with pytest.raises(MalformedRequest):
        validate_resource_name(name)


@pytest.mark.parametrize("name", ["...", ".a", "a.", "..a"])
def test_dots_among_others_are_plain_characters(name: str) -> None:
    assert validate_item_id(name) == name
    assert validate_resource_name(name) == name


@pytest.mark.parametrize("name", [None, UNDEFINED, 5, True, ["a"]])
def test_an_id_that_is_not_a_string_is_refused(name: object) -> None:
    with pytest.raises(MalformedRequest, match="'id'"):
        validate_item_id(name)


@pytest.mark.parametrize("name", ["", "x" * 1024])
def test_an_item_id_has_1_to_1023_characters(name: str) -> None:
    assert validate_item_id("x" * 1023) == "x" * 1023
    with pytest.raises(MalformedRequest, match="unique non-empty string less than '1024' characters"):
        validate_item_id(name)


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_the_name_of_a_container_has_1_to_255_characters(name: str) -> None:
    with pytest.raises(MalformedRequest, match="unique non-empty string less than '255' characters"):
        validate_resource_name(name)
