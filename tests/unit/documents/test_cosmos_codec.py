"""The codec of the service's items: what it adds, what it leaves alone, and what it finds in stored bodies."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest, StoredDamage
from asterism.models.documents.codec import DocumentCodec, Stamped
from asterism.models.documents.cosmos.codec import CosmosCodec
from asterism.models.documents.cosmos.properties import SYSTEM_PROPERTIES
from asterism.models.documents.item_record import BODY_ENDS, pack_item, tag_and_body, unpack_item
from asterism.values.json.text import loads

# As the type of the promise, so that the type checker holds the codec to it.
CODEC: DocumentCodec = CosmosCodec(bytes(range(4)) + b"\x80\x01\x02\x03")
TAG = bytes(range(16))
ETAG = '"00010203-0405-0607-0809-0a0b0c0d0e0f"'

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.text() | st.sampled_from(SYSTEM_PROPERTIES), values, max_size=6).filter(
    lambda document: "ttl" not in document
)


def stamp(document: dict[str, object], *, now: int = 1_700_000_000) -> Stamped:
    return CODEC.stamp(document, number=77, tag=TAG, changed_at_seconds=now)


@given(documents)
def test_stamping_completes_a_copy_and_leaves_the_callers_document_alone(document: dict[str, object]) -> None:
    given_document = deepcopy(document)
    stamped = stamp(document)
    # D9
    assert document == given_document
    own = {name: value for name, value in document.items() if name not in SYSTEM_PROPERTIES}
    assert list(stamped.document) == [*own, *SYSTEM_PROPERTIES], "the system's properties come last, in their order"
    assert {name: stamped.document[name] for name in own} == own
    assert loads(stamped.body) == CODEC.decode(stamped.body) == stamped.document
    assert (stamped.document["_etag"], stamped.etag, CODEC.etag(TAG)) == (ETAG, ETAG, ETAG)
    assert CODEC.changed_at_seconds(stamped.body) == 1_700_000_000
    assert CODEC.contents(stamped.document) == CODEC.contents(document)


@given(documents)
def test_a_record_gives_back_what_was_packed(document: dict[str, object]) -> None:
    body = stamp(document).body
    for is_indexed in (True, False):
        packed = pack_item(CODEC.record_format, number=77, place_in_batch=3, tag=TAG, body=body, is_indexed=is_indexed)
        stored = (9).to_bytes(8, "big") + packed
        item = unpack_item(stored)
        assert (item.lsn, item.number, item.place_in_batch, item.tag, item.body) == (9, 77, 3, TAG, body)
        assert item.is_indexed == is_indexed
        assert tag_and_body(stored, b"") == (TAG, body)


def test_a_record_that_was_cut_or_has_an_unknown_format_is_damage() -> None:
    packed = pack_item(CODEC.record_format, number=77, place_in_batch=0, tag=TAG, body=stamp({"id": "a"}).body)
    stored = bytes(8) + packed
    unknown = stored[:8] + bytes([max(BODY_ENDS) + 1]) + stored[9:]
    for damaged in (b"", stored[:8], stored[:30], stored[:35], stored[:-1], unknown):
        with pytest.raises(StoredDamage):
            unpack_item(damaged)
        with pytest.raises(StoredDamage):
            tag_and_body(damaged, b"key")


def test_a_body_that_is_not_json_is_damage_under_its_key() -> None:
    with pytest.raises(StoredDamage) as damage:
        CODEC.decode(b'{"id":}', key=b"\x10key")
    assert damage.value.key == b"\x10key".hex()
    with pytest.raises(StoredDamage):
        CODEC.changed_at_seconds(b'{"id":"a"}')


@pytest.mark.parametrize("item_id", ["a", "é" * 300, "with space", "%2F?", "\x00\n"])
def test_ids_are_utf_8_and_come_back_as_text(item_id: str) -> None:
    as_bytes = CODEC.id_of({"id": item_id})
    assert as_bytes == item_id.encode() == CODEC.stored_id({"id": item_id})
    assert CODEC.id_text(as_bytes) == item_id


@pytest.mark.parametrize("document", [{}, {"id": 1}, {"id": None}, {"id": ""}, {"id": "a/b"}, {"id": ".."}])
def test_a_document_without_a_sound_id_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(MalformedRequest):
        CODEC.id_of(document)


def test_a_row_of_the_latest_versions_has_the_lsn_behind_the_item() -> None:
    stamped = stamp({"id": "a"})
    row = loads(CODEC.latest_row(stamped.body, 12))  # type: ignore[arg-type]  # a plain number is an LSN
    assert row == {**stamped.document, "_lsn": 12}
