"""Properties of entities: types, ranges, limits, what is stored and what comes back."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.storage.refusals import Refusal
from asterism.apis.table.entities.entity_json import Metadata, TableUrl, read_entity, write_entity, write_page
from asterism.apis.table.entities.entity_keys import check_keys, entity_reference, read_keys
from asterism.apis.table.etags import etag_text, ticks_of_etag
from asterism.models.tables.codec import decode, encode, merge
from asterism.models.tables.entities import FailureReason, StoredEntity
from asterism.models.tables.keys import EntityKeys
from asterism.values.json.text import dumps, loads
from asterism.values.ticks import ticks_of, timestamp_text

URL = TableUrl("http://127.0.0.1:10002/acct", "acct", "t")


def kept(name: str, value: object, kind: str | None = None) -> Any:
    members: dict[str, object] = {name: value}
    if kind is not None:
        members[f"{name}@odata.type"] = f"Edm.{kind}"
    return decode(read_entity(dumps(members), is_cosmos=False).properties).get(name)


def code(name: str, value: object, kind: str | None = None) -> str:
    with pytest.raises(Refusal) as refused:
        kept(name, value, kind)
    assert refused.value.status == 400
    return refused.value.code


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("text", None, "text"),
        (5, None, 5),
        (5.0, None, 5.0),
        # JavaScript sends these for Date.now(): beyond an Int32 a number without a type is a Double.
        (2**31, None, 2147483648.0),
        (-(2**31) - 1, None, -2147483649.0),
        (1763272800000, None, 1763272800000.0),
        (True, None, True),
        ("12345", "Int32", 12345),
        ("False", "Boolean", False),
        (1, "Boolean", True),
        ("3.14", "Double", 3.14),
        (3, "Double", 3.0),
        ("NaN", "Double", "NaN"),
        ("-Infinity", "Double", "-Infinity"),
        ("-INF", "Double", "-Infinity"),
        ("1e400", "Double", "Infinity"),
        ("9223372036854775807", "Int64", "9223372036854775807"),
        (5, "Int64", "5"),
        ("C9DA6455-213D-42C9-9A79-3E9149A57833", "Guid", "c9da6455-213d-42c9-9a79-3e9149a57833"),
        ("2013-08-22T01:12:06.2608595Z", "DateTime", "2013-08-22T01:12:06.2608595Z"),
        ("2013-08-22T01:12:06Z", "DateTime", "2013-08-22T01:12:06Z"),
        ("2013-08-22T03:12:06+02:00", "DateTime", "2013-08-22T01:12:06.0000000Z"),
        ("2013-08-22", "DateTime", "2013-08-22T00:00:00.0000000Z"),
        ("9999-12-31T23:59:59.9999999Z", "DateTime", "9999-12-31T23:59:59.9999999Z"),
        ("AAEC", "Binary", "AAEC"),
        ("", "String", ""),
    ],
)
def test_a_value_is_read_as_its_type_says(value: object, kind: str | None, expected: object) -> None:
    assert kept("x", value, kind) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({}, None),
        ([1], None),
        ("x", "Int32"),
        (2**31, "Int32"),
        (1.5, "Int32"),
        ("9223372036854775808", "Int64"),
        ("x", "Double"),
        (True, "Double"),
        ("maybe", "Boolean"),
        ("yesterday", "DateTime"),
        ("2013-02-30T00:00:00Z", "DateTime"),
        ("9999-12-31T23:59:59-01:00", "DateTime"),
        ("2013-02-03T00:00:00+99:99", "DateTime"),
        (f"2013-02-03T00:00:00.{'0' * 100}Z", "DateTime"),
        ("123", "Guid"),
        ("not base64!", "Binary"),
        (5, "String"),
        ("x", "Decimal"),
    ],
)
def test_a_value_that_is_none_of_its_type_is_refused(value: object, kind: str | None) -> None:
    assert code("x", value, kind) == "InvalidInput"


def test_a_long_text_that_is_almost_a_number_is_refused_and_not_pondered() -> None:
    assert code("x", "1" * 100_000 + "x", "Double") == "InvalidInput"
    assert code("x", " " * 100_000 + "x", "Double") == "InvalidInput"
    assert kept("x", "1" * 300 + ".5", "Double") > 1e299


def test_a_number_beyond_32_bits_without_a_type_is_answered_as_a_double() -> None:
    assert read_entity(b'{"x":5000000000}', is_cosmos=False).properties == b'"x":5000000000.0'


def test_limits_have_the_services_codes() -> None:
    assert kept("x", "a" * 32768) == "a" * 32768
    assert code("x", "a" * 32769) == "PropertyValueTooLarge"
    assert code("x", "\U0001f600" * 16385) == "PropertyValueTooLarge"
    assert kept("x", base64.b64encode(bytes(65536)).decode(), "Binary")
    assert code("x", base64.b64encode(bytes(65537)).decode(), "Binary") == "PropertyValueTooLarge"
    assert code("x", "1600-12-31T00:00:00Z", "DateTime") == "OutOfRangeInput"
    assert code("123", 1) == "PropertyNameInvalid"
    assert code("a-b", 1) == "PropertyNameInvalid"
    assert kept("a" * 255, 1) == 1
    assert code("a" * 256, 1) == "PropertyNameTooLong"


def test_an_entity_has_at_most_252_properties_and_one_mebibyte() -> None:
    read_entity(dumps({f"p{number}": number for number in range(252)}), is_cosmos=False)
    with pytest.raises(Refusal) as refused:
        read_entity(dumps({f"p{number}": number for number in range(253)}), is_cosmos=False)
    assert refused.value.code == "TooManyProperties"
    with pytest.raises(Refusal) as refused:
        read_entity(dumps({f"p{number}": "a" * 32768 for number in range(16)}), is_cosmos=False)
    assert refused.value.code == "EntityTooLarge"
    read_entity(dumps({f"p{number}": "a" * 32768 for number in range(15)}), is_cosmos=False)


def test_members_without_a_value_are_many_but_not_without_end() -> None:
    nothing = {f"p{number}": None for number in range(5000)}
    assert read_entity(dumps({**nothing, "a": 1}), is_cosmos=False).properties == b'"a":1'
    with pytest.raises(Refusal) as refused:
        read_entity(dumps({f"p{number}": None for number in range(20_000)}), is_cosmos=False)
    assert refused.value.code == "TooManyProperties"


def test_what_comes_behind_too_many_properties_is_not_looked_at() -> None:
    members = {**{f"p{number}": number for number in range(600)}, "no name": 1}
    with pytest.raises(Refusal) as refused:
        read_entity(dumps(members), is_cosmos=False)
    assert refused.value.code == "TooManyProperties"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"x":"\\ud800"}', b"{'x':1}", b"\xff"])
def test_a_body_that_is_no_entity_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        read_entity(body, is_cosmos=False)
    assert refused.value.code == "InvalidInput"


def test_nulls_and_annotations_of_annotations_are_left_out() -> None:
    members = {"a": None, "b": 1, "b@odata.type@odata.type": "Edm.String", "odata.etag": "x", "Timestamp": "x"}
    assert read_entity(dumps(members), is_cosmos=False).properties == b'"b":1'


def test_cosmos_drops_a_property_called_etag_with_a_capital() -> None:
    assert read_entity(dumps({"Etag": "a", "etag": "b"}), is_cosmos=True).properties == b'"etag":"b"'


# --- keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("PartitionKey='p',RowKey='r'", ("p", "r")),
        ("RowKey='r', PartitionKey='p'", ("p", "r")),
        ("PartitionKey='it''s',RowKey=''", ("it's", "")),
        ("PartitionKey='a,RowKey=''b''',RowKey='(=)'", ("a,RowKey='b'", "(=)")),
    ],
)
def test_keys_are_read_as_quoted_texts(text: str, keys: tuple[str, str]) -> None:
    assert read_keys(text) == keys


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "PartitionKey='p'",
        "PartitionKey='p',RowKey='r",
        "PartitionKey='p'',RowKey='r'",
        "PartitionKey='a/b',RowKey='r'",
    ],
)
def test_what_names_no_entity_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_keys(text)
    assert refused.value.message == "Bad Request - Error in query syntax."


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="/\\")), st.text("a'=,()"))
def test_a_reference_names_the_keys_it_was_made_of(partition_key: str, row_key: str) -> None:
    reference = entity_reference("t", EntityKeys(partition_key, row_key))
    assert reference.isascii()
    assert read_keys(unquote(reference)[2:-1]) == (partition_key, row_key)


@pytest.mark.parametrize("character", ["/", "\\", "#", "?", "\0", "\n", "\x1f", "\x7f", "\x9f"])
def test_keys_have_no_forbidden_characters(character: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_keys(EntityKeys(f"a{character}", "r"), "storage")
    assert (refused.value.code, "'PartitionKey' parameter" in refused.value.message) == ("OutOfRangeInput", True)


def test_keys_have_at_most_a_kibibyte_of_utf_16() -> None:
    check_keys(EntityKeys("a" * 512, "é" * 512), "storage")
    for key in ("a" * 513, "\U0001f600" * 257):
        with pytest.raises(Refusal) as refused:
            check_keys(EntityKeys("p", key), "storage")
        assert refused.value.code == "PropertyValueTooLarge"


def test_empty_keys_are_for_storage_only() -> None:
    check_keys(EntityKeys("", ""), "storage")
    with pytest.raises(Refusal):
        check_keys(EntityKeys("p", ""), "cosmos")
    with pytest.raises(Refusal) as refused:
        check_keys(EntityKeys("p", "a" * 256), "cosmos")
    assert refused.value.code == "KeyValueTooLarge"


# --- the codec ------------------------------------------------------------------------------------------------------

VALUES = (
    st.text(max_size=20)
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
MEMBERS = st.dictionaries(NAMES, VALUES, max_size=6)


# T4 of asterism/models/tables/DESIGN.md.
@given(MEMBERS)
def test_what_is_encoded_comes_back(members: dict[str, Any]) -> None:
    assert decode(encode(members)) == members


def merged(stored: bytes, given_: bytes) -> bytes:
    result = merge(stored, given_)
    assert isinstance(result, bytes)
    return result


@given(MEMBERS, MEMBERS)
def test_a_merge_is_the_old_properties_under_the_new(stored: dict[str, Any], given_: dict[str, Any]) -> None:
    assert decode(merged(encode(stored), encode(given_))) == {**stored, **given_}


def test_a_merge_can_change_a_type() -> None:
    wide = read_entity(dumps({"x": "5", "x@odata.type": "Edm.Int64", "y": 1}), is_cosmos=False).properties
    assert decode(merged(wide, b'"x":5')) == {"x": 5, "y": 1}
    assert decode(merged(b'"x":5', wide)) == {"x": "5", "x@odata.type": "Edm.Int64", "y": 1}


def test_a_merge_that_makes_too_much_of_an_entity_is_refused() -> None:
    many = [encode({f"{half}{number}": number for number in range(200)}) for half in "ab"]
    assert merge(*many) is FailureReason.TOO_MANY_PROPERTIES
    large = [encode({f"{half}{number}": "x" * 32768 for number in range(10)}) for half in "ab"]
    assert merge(*large) is FailureReason.TOO_LARGE


# --- answers --------------------------------------------------------------------------------------------------------

STORED = StoredEntity("p", "it's", 17_947_440_001_234_567, b'"a":1,"big@odata.type":"Edm.Int64","big":"5","real":3.0')


def written(level: Metadata, selected: list[str] | None = None) -> dict[str, Any]:
    selection = None if selected is None else dict.fromkeys(selected)
    return cast("dict[str, Any]", loads(write_entity(STORED, URL, level, selection)))


def test_minimal_metadata_types_what_json_does_not_tell() -> None:
    stamp = timestamp_text(STORED.etag_time)
    assert written(Metadata.MINIMAL) == {
        "odata.metadata": "http://127.0.0.1:10002/acct/$metadata#t",
        "odata.etag": etag_text(STORED.etag_time),
        "PartitionKey": "p",
        "RowKey": "it's",
        "Timestamp": stamp,
        "a": 1,
        "big@odata.type": "Edm.Int64",
        "big": "5",
        "real": 3.0,
    }
    assert b'"real":3.0' in write_entity(STORED, URL, Metadata.MINIMAL, None)


def test_no_metadata_is_values_only() -> None:
    assert list(written(Metadata.NONE)) == ["PartitionKey", "RowKey", "Timestamp", "a", "big", "real"]


def test_full_metadata_adds_type_id_and_edit_link() -> None:
    full = written(Metadata.FULL)
    assert set(full) - set(written(Metadata.MINIMAL)) == {
        "odata.type",
        "odata.id",
        "odata.editLink",
        "Timestamp@odata.type",
    }
    assert full["odata.editLink"] == "t(PartitionKey='p',RowKey='it%27%27s')"
    assert full["odata.id"] == f"{URL.base}/{full['odata.editLink']}"


def test_a_selection_has_what_is_there_of_what_was_asked() -> None:
    assert set(written(Metadata.MINIMAL, ["big", "missing", "RowKey"])) == {
        "odata.metadata",
        "odata.etag",
        "RowKey",
        "big",
        "big@odata.type",
    }
    assert written(Metadata.NONE, ["missing"]) == {}


@given(st.lists(MEMBERS, max_size=3), st.sampled_from(Metadata), st.none() | st.lists(NAMES, max_size=2))
def test_a_page_is_json_with_a_row_for_each_entity(
    rows: list[dict[str, Any]], level: Metadata, selected: list[str] | None
) -> None:
    entities = [StoredEntity('p"', "\u2028", 0, encode(members)) for members in rows]
    page: Any = loads(write_page(entities, URL, level, selected))
    assert len(page["value"]) == len(rows)


# --- times ----------------------------------------------------------------------------------------------------------


@given(st.integers(-116_444_736_000_000_000, 2_534_023_007_999_999_999 // 10))
def test_a_timestamp_and_an_etag_tell_their_ticks(ticks: int) -> None:
    assert ticks_of(timestamp_text(ticks)) == ticks
    assert ticks_of_etag(etag_text(ticks)) == ticks


@given(st.text(max_size=30))
def test_a_text_that_is_no_etag_has_no_ticks(text: str) -> None:
    assert ticks_of_etag(text) is None


def test_the_etag_is_the_quoted_timestamp() -> None:
    assert etag_text(17_947_440_001_234_567) == "W/\"datetime'2026-11-15T12%3A00%3A00.1234567Z'\""


class _NotWalked(dict[str, None]):
    def __iter__(self) -> Iterator[str]:
        raise AssertionError("it has more names than the entity has properties")


def test_a_long_selection_is_not_walked_for_every_entity() -> None:
    stored = StoredEntity("p", "r", 0, b'"a":1,"b":2')
    selection = _NotWalked.fromkeys(["b", *(f"nothing{number}" for number in range(5000))])
    assert write_entity(stored, URL, Metadata.NONE, selection) == b'{"b":2}'


def test_an_annotation_may_be_written_with_an_escape() -> None:
    body = b'{"x":"5","x\\u0040odata.type":"Edm.Int64"}'
    assert decode(read_entity(body, is_cosmos=False).properties) == {"x": "5", "x@odata.type": "Edm.Int64"}
