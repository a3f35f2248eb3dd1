"""Records of the write log: every group of changes survives, and nothing that is not whole is ever returned."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asterism.storage.contract import EngineFailed
from asterism.storage.lmdb.log_record import (
    ALIGNMENT_BYTES,
    STORED_KEY_BYTES_MAX,
    RecordPlace,
    decode_record,
    encode_record,
    find_record,
    find_records,
)

STORE, OTHER_STORE = b"store-id", b"other-id"
SECTOR_BYTES = 512

Changes = dict[bytes, bytes | None]

keys = st.binary(min_size=1, max_size=12) | st.binary(min_size=1, max_size=STORED_KEY_BYTES_MAX)
values = st.binary(max_size=40) | st.integers(0, 3 * ALIGNMENT_BYTES).map(lambda length: b"v" * length)
groups = st.dictionaries(keys, st.none() | values, min_size=1, max_size=8)
logs = st.lists(groups, min_size=1, max_size=5)


def encoded(log: list[Changes], *, first: int = 1, store_id: bytes = STORE) -> list[bytes]:
    return [encode_record(store_id, sequence, changes) for sequence, changes in enumerate(log, first)]


def decoded(data: bytes, place: RecordPlace) -> Changes:
    changes = decode_record(data, place)
    assert len(changes) == place.put_count + place.delete_count
    return changes


def sequences(data: bytes) -> list[int]:
    return [place.sequence for place in find_records(data)]


def content_bytes(record: bytes) -> int:
    """Return the length of a record without its padding, which may hold anything."""
    place = find_record(record, 0)
    assert place is not None
    return place.end


@given(logs)
def test_every_group_of_changes_survives_the_log(log: list[Changes]) -> None:
    data = b"".join(encoded(log))
    places = list(find_records(data))
    assert [(place.store_id, place.sequence) for place in places] == [(STORE, n) for n in range(1, len(log) + 1)]
    assert [decoded(data, place) for place in places] == log


@given(groups)
def test_puts_and_deletes_keep_their_order(changes: Changes) -> None:
    record = encode_record(STORE, 1, changes)
    puts = [(key, value) for key, value in changes.items() if value is not None]
    deletes = [(key, None) for key, value in changes.items() if value is None]
    assert [*decoded(record, next(find_records(record))).items()] == [*puts, *deletes]


def test_a_record_of_no_changes_is_whole() -> None:
    record = encode_record(STORE, 7, {})
    (place,) = find_records(record)
    assert (place.sequence, decoded(record, place)) == (7, {})


@given(logs, st.integers(0, 2**64 - 10))
def test_every_record_begins_and_ends_at_a_block(log: list[Changes], before: int) -> None:
    records = encoded(log, first=before + 1)
    assert {len(record) % ALIGNMENT_BYTES for record in records} == {0}
    data = b"".join(records)
    places = list(find_records(data))
    assert sum(len(record) for record in records) == places[-1].next_at
    assert all(place.end <= place.next_at < place.end + ALIGNMENT_BYTES for place in places)


@given(logs, st.data())
def test_a_log_cut_within_its_last_record_ends_before_it(log: list[Changes], data: st.DataObject) -> None:
    *before, last = encoded(log)
    kept = data.draw(st.integers(0, content_bytes(last) - 1))
    assert sequences(b"".join(before) + last[:kept]) == list(range(1, len(log)))


@given(logs, st.data())
def test_a_log_cut_within_the_padding_of_its_last_record_is_whole(log: list[Changes], data: st.DataObject) -> None:
    *before, last = encoded(log)
    kept = data.draw(st.integers(content_bytes(last), len(last)))
    assert sequences(b"".join(before) + last[:kept]) == list(range(1, len(log) + 1))


@given(logs, st.data())
def test_a_log_with_a_flipped_bit_in_its_last_record_ends_before_it(log: list[Changes], data: st.DataObject) -> None:
    *before, last = encoded(log)
    at = data.draw(st.integers(0, content_bytes(last) - 1))
    flipped = bytearray(last)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    assert sequences(b"".join(before) + flipped) == list(range(1, len(log)))


@given(logs, st.data())
def test_records_end_before_the_first_that_is_torn(log: list[Changes], data: st.DataObject) -> None:
    records = encoded(log)
    torn_number = data.draw(st.integers(1, len(log)))
    whole = records[torn_number - 1]
    sectors = len(whole) // SECTOR_BYTES
    lost = data.draw(st.sets(st.integers(0, sectors - 1), min_size=1))
    torn = bytearray(whole)
    for sector in lost:
        torn[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES] = bytes(SECTOR_BYTES)
    assume(torn[: content_bytes(whole)] != whole[: content_bytes(whole)])
    records[torn_number - 1] = bytes(torn)
    assert sequences(b"".join(records)) == list(range(1, torn_number))


@given(logs, logs)
def test_records_of_an_earlier_use_of_the_file_are_never_returned(earlier: list[Changes], log: list[Changes]) -> None:
    first = len(earlier) + 1
    old, new = b"".join(encoded(earlier)), b"".join(encoded(log, first=first))
    data = new + old[len(new) :]
    assert sequences(data) == list(range(first, first + len(log)))
    assert [decoded(data, place) for place in find_records(data)] == log


@given(logs, logs, st.data())
def test_a_record_torn_over_an_earlier_use_of_the_file_is_not_returned(
    earlier: list[Changes], log: list[Changes], data: st.DataObject
) -> None:
    """Each sector of the last record is the new one or the one that was there before."""
    *before, last = encoded(log, first=len(earlier) + 1)
    at = sum(map(len, before))
    old = b"".join(encoded(earlier))[at : at + len(last)].ljust(len(last), b"\x00")
    sectors = len(last) // SECTOR_BYTES
    is_new = data.draw(st.lists(st.booleans(), min_size=sectors, max_size=sectors))
    mixed = b"".join((last if new else old)[n * SECTOR_BYTES : (n + 1) * SECTOR_BYTES] for n, new in enumerate(is_new))
    assume(mixed[: content_bytes(last)] != last[: content_bytes(last)])
    # An earlier record that is still whole is below the checkpoint.
    found = [sequence for sequence in sequences(b"".join(before) + mixed) if sequence > len(earlier)]
    assert found == list(range(len(earlier) + 1, len(earlier) + len(log)))


@given(groups, groups)
def test_a_record_of_another_store_ends_the_log(own: Changes, theirs: Changes) -> None:
    data = encode_record(STORE, 1, own) + encode_record(OTHER_STORE, 2, theirs)
    assert sequences(data) == [1]


@given(groups, st.integers(0, 2**32).filter(lambda sequence: sequence != 5))
def test_a_record_that_does_not_follow_ends_the_log(changes: Changes, sequence: int) -> None:
    data = encode_record(STORE, 4, changes) + encode_record(STORE, sequence, changes)
    assert sequences(data) == [4]


@given(st.binary(max_size=300))
def test_bytes_that_are_not_a_log_have_no_records(data: bytes) -> None:
    assert list(find_records(data)) == []
    assert find_record(data, 0) is None


@pytest.mark.parametrize("value", [b"", None])
def test_a_key_that_the_tree_would_refuse_is_refused(value: bytes | None) -> None:
    with pytest.raises(EngineFailed, match="more than 511 bytes"):
        encode_record(STORE, 1, {b"short": b"", b"k" * 512: value})
    encode_record(STORE, 1, {b"short": b"", b"k" * 511: value})
