"""Documents of MongoDB as JSON items."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bson import Binary, Code, DatetimeMS, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.bson.codec import decode, encode
from asterism.values.bson.json_view import (
    SYSTEM_PROPERTIES,
    date_text,
    id_text,
    ids_of_text,
    item_of,
    to_json,
    values_of_text,
)
from asterism.values.bson.key_bytes import encode_key
from asterism.values.json.text import dumps, loads
from tests.unit.mongo.bson_values import DOCUMENTS, IDS, SCALARS

HEX = "0123456789abcdef01234567"
UUID = "00112233-4455-6677-8899-aabbccddeeff"


def stored(value: Any) -> Any:
    return decode(encode({"v": value}))["v"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5, 5),
        (Int64(2**53), 2**53),
        (Int64(2**53 + 1), "9007199254740993"),
        (2.5, 2.5),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal128("1.10"), "1.10"),
        (ObjectId(HEX), HEX),
        (DatetimeMS(0), "1970-01-01T00:00:00.000Z"),
        (DatetimeMS(-1), "1969-12-31T23:59:59.999Z"),
        (DatetimeMS(253402300800000), "+010000-01-01T00:00:00.000Z"),
        (b"\x01\x02", "AQI="),
        (Binary(bytes.fromhex(UUID.replace("-", "")), 4), UUID),
        (Binary(b"\x01", 5), {"$binary": {"base64": "AQ==", "subType": "05"}}),
        (Regex("^a/", "i"), "/^a//i"),
        (Code("f()"), "f()"),
        (Code("f()", {"x": 1}), {"$code": "f()", "$scope": {"x": 1}}),
        (Timestamp(7, 8), {"$timestamp": {"t": 7, "i": 8}}),
        (MinKey(), {"$minKey": 1}),
        (MaxKey(), {"$maxKey": 1}),
        ({"a": [ObjectId(HEX), {"b": None}]}, {"a": [HEX, {"b": None}]}),
    ],
)
def test_every_type_has_a_value_of_json(value: Any, shown: Any) -> None:
    assert to_json(stored(value)) == shown


@given(DOCUMENTS)
def test_every_document_is_an_item_of_json(document: dict[str, Any]) -> None:
    found = decode(encode({"_id": 1, **document}))
    item = item_of(found, rid="r", self_link="s", etag='"e"', seconds=3)
    assert loads(dumps(item)) == item
    assert [item[name] for name in SYSTEM_PROPERTIES if name != "id"] == ["r", "s", '"e"', "attachments/", 3]
    assert len(item) == len(SYSTEM_PROPERTIES) + len(found)


@given(SCALARS)
def test_text_leads_back_to_the_value_that_it_shows(value: Any) -> None:
    kept = stored(value)
    shown = to_json(kept)
    if isinstance(shown, str) and not isinstance(kept, Regex):
        assert encode_key(kept) in [encode_key(candidate) for candidate in values_of_text(shown)]


@given(IDS)
def test_ids_lead_back_to_the_document(value: Any) -> None:
    kept = stored(value)
    found = [encode_key(candidate) for candidate in ids_of_text(id_text(kept))]
    assert encode_key(kept) in found


@given(st.text(max_size=30))
def test_any_text_may_be_asked_for_as_an_id(text: str) -> None:
    assert all(id_text(found) == text for found in ids_of_text(text))
    assert text in ids_of_text(text)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_dates_of_four_digit_years_have_the_order_of_their_texts(first: int, second: int) -> None:
    first, second = (time % 253402300800000 for time in (first, second))
    assert (first < second) == (date_text(first) < date_text(second))


@pytest.mark.parametrize(
    "text",
    [
        '{"$numberDecimal":"abc"}',
        '{"$oid":"x"}',
        '{"$date":{}}',
        '{"$uuid":5}',
        "[" * 5000,
        '{"$ref":"a","$id":1}',
        "1e999",
    ],
)
def test_text_that_looks_like_another_value_is_still_an_id(text: str) -> None:
    assert ids_of_text(text)[0] == text


def test_fields_named_like_system_properties_keep_their_values_under_other_names() -> None:
    document = {"_id": 7, "id": "mine", "id_": "other", "_ts": 1}
    item = item_of(document, rid="r", self_link="s", etag="e", seconds=3)
    assert (item["id"], item["id__"], item["id_"], item["_ts"], item["_ts_"]) == ("7", "mine", "other", 3, 1)


def test_ids_that_json_lacks_are_extended_json() -> None:
    assert json.loads(id_text({"a": 1})) == {"a": {"$numberInt": "1"}}
    assert [id_text(value) for value in ("x", 5, 5.0, 1.5, ObjectId(HEX))] == ["x", "5", "5", "1.5", HEX]


@pytest.mark.parametrize("milliseconds", [-62_135_596_800_001, 253_402_300_800_000, -(2**63), 0])
def test_dates_in_an_id_may_be_of_any_year(milliseconds: int) -> None:
    wanted = {"day": DatetimeMS(milliseconds)}
    assert encode_key(wanted) in [encode_key(found) for found in ids_of_text(id_text(wanted))]
