"""Lines of a capture: written ones are read back, and a line that is no request does not end the reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.advisor.captured_request import (
    LINE_BYTES_MAX,
    OPERATIONS,
    BadLine,
    CapturedRequest,
    CaptureHeader,
    NotARequest,
    read_capture,
)
from asterism.advisor.value_digests import digest
from asterism.values.undefined import UNDEFINED

SALT = b"a salt of a test"
READ = CapturedRequest(at=1.5, operation="read", item_id="o-17", key=("ada",), charge=1.0, status=200)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
SCALARS = st.one_of(
    TEXTS, st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
COUNTS = st.none() | st.integers(0, 2**40)
PATHS = st.dictionaries(TEXTS, SCALARS, max_size=3)
REQUESTS = st.builds(
    CapturedRequest,
    at=st.floats(0, 2e9),
    operation=st.sampled_from(OPERATIONS),
    item_id=st.none() | TEXTS,
    key=st.none() | st.lists(SCALARS | st.just(UNDEFINED), max_size=3).map(tuple),
    values=PATHS,
    equal=st.dictionaries(TEXTS, st.lists(SCALARS, max_size=3).map(tuple), max_size=3),
    between=st.dictionaries(TEXTS, st.tuples(SCALARS, SCALARS), max_size=3),
    order=st.lists(TEXTS, max_size=3).map(tuple),
    shape=st.none() | TEXTS,
    size_bytes=COUNTS,
    results=COUNTS,
    loaded=COUNTS,
    partitions=COUNTS,
    charge=st.none() | st.floats(0, 1e6),
    status=st.none() | st.integers(100, 599),
    batch=st.none() | TEXTS,
    of_range=st.booleans(),
    continued=st.booleans(),
)


@given(REQUESTS)
def test_a_request_is_read_as_it_was_written(request: CapturedRequest) -> None:
    line = request.to_json()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert CapturedRequest.from_json(line) == request


@given(
    st.builds(
        CaptureHeader,
        TEXTS,
        TEXTS,
        started=st.floats(0, 2e9),
        sampling=st.floats(0.0001, 1),
        values=st.sampled_from(["plain", "digests"]),
        dropped=st.integers(0, 1000),
    )
)
def test_a_header_is_read_as_it_was_written(header: CaptureHeader) -> None:
    assert list(read_capture([header.to_json()])) == [header]


def test_a_time_and_an_operation_are_enough() -> None:
    assert CapturedRequest.from_json('{"at": 7, "operation": "query"}') == CapturedRequest(at=7.0, operation="query")


def test_unknown_members_are_ignored() -> None:
    line = b'{"at": 1.5, "operation": "read", "id": "o-17", "key": ["ada"], "charge": 1, "status": 200, "colour": {}}'
    assert CapturedRequest.from_json(line) == READ


def test_an_absent_key_value_is_an_empty_object() -> None:
    line = CapturedRequest(at=1.0, operation="read", key=("ada", UNDEFINED)).to_json()
    assert b'"key":["ada",{}]' in line


def test_digests_stand_for_every_value_and_for_nothing_else() -> None:
    request = CapturedRequest(
        at=1.0,
        operation="query",
        item_id="o-17",
        key=("ada", UNDEFINED),
        values={"/total": 12.5},
        equal={"/customer": ("ada", 7)},
        between={"/at": ("2026-01-01", None)},
        shape="SELECT * FROM c",
    )
    shown = CapturedRequest.from_json(request.to_json(shown=lambda value: digest(value, salt=SALT)))
    assert shown.item_id == digest("o-17", salt=SALT)
    assert shown.key == (digest("ada", salt=SALT), UNDEFINED)
    assert shown.values == {"/total": digest(12.5, salt=SALT)}
    assert shown.equal == {"/customer": (digest("ada", salt=SALT), digest(7, salt=SALT))}
    assert shown.between == {"/at": (digest("2026-01-01", salt=SALT), None)}
    assert shown.shape == request.shape


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[]", "must be a JSON object"),
        ("nonsense", "not valid JSON"),
        ('{"operation": "read"}', "'at' is missing"),
        ('{"at": 1}', "'operation' must be one of read, create"),
        ('{"at": 1, "operation": "drop"}', "'operation' must be one of"),
        ('{"at": "1", "operation": "read"}', "'at' must be a number that is not negative"),
        ('{"at": -1, "operation": "read"}', "'at' must be a number that is not negative"),
        ('{"at": true, "operation": "read"}', "'at' must be a number"),
        ('{"at": 1, "operation": "read", "id": 5}', "'id' must be a text"),
        ('{"at": 1, "operation": "read", "key": "ada"}', "'key' must be a list of values"),
        ('{"at": 1, "operation": "read", "key": [["ada"]]}', "'key' must be a list of values"),
        ('{"at": 1, "operation": "create", "values": {"/a": [1]}}', "'values' must be an object of values by path"),
        ('{"at": 1, "operation": "query", "equal": {"/a": 1}}', "'equal' must be an object of lists by path"),
        ('{"at": 1, "operation": "query", "between": {"/a": [1]}}', "'between' must be an object of two bounds"),
        ('{"at": 1, "operation": "query", "order": "/a"}', "'order' must be a list of texts"),
        ('{"at": 1, "operation": "query", "results": 1.5}', "'results' must be a whole number"),
        ('{"at": 1, "operation": "query", "charge": null, "loaded": -1}', "'loaded' must be a whole number"),
        (f'{{"at": 1, "operation": "{"x" * LINE_BYTES_MAX}"}}', "longer than 1,048,576 bytes"),
    ],
)
def test_a_line_that_is_no_request_says_what_is_wrong_with_it(line: str, reason: str) -> None:
    with pytest.raises(NotARequest, match=reason):
        CapturedRequest.from_json(line)


def test_bad_lines_are_numbered_and_passed_over() -> None:
    lines = [b'{"capture": 1}\n', b"garbage\n", READ.to_json(), b"\n", b'{"at": 1}\n', READ.to_json()]
    header, first, read, second, last = read_capture(lines)
    assert header == CaptureHeader()
    assert (read, last) == (READ, READ)
    assert isinstance(first, BadLine)
    assert isinstance(second, BadLine)
    assert [(bad.number, bad.is_torn) for bad in (first, second)] == [(2, False), (5, False)]


def test_a_torn_last_line_is_told_from_a_bad_one() -> None:
    line = READ.to_json()
    found = list(read_capture([line, line[:30]]))
    assert found[0] == READ
    assert isinstance(found[1], BadLine)
    assert (found[1].number, found[1].is_torn) == (2, True)


@given(st.lists(REQUESTS, min_size=1, max_size=4), st.data())
def test_a_capture_that_is_cut_off_anywhere_keeps_its_whole_lines(
    requests: list[CapturedRequest], data: st.DataObject
) -> None:
    whole = b"".join(request.to_json() for request in requests)
    cut = data.draw(st.integers(0, len(whole)))
    found = list(read_capture(whole[:cut].splitlines(keepends=True)))
    kept = whole[:cut].count(b"\n")
    assert found[:kept] == requests[:kept]
    # The last line may lack nothing but its end.
    assert all(entry == requests[kept] or isinstance(entry, BadLine) for entry in found[kept:])


def test_a_header_of_another_format_is_a_bad_line() -> None:
    (found,) = read_capture(['{"capture": 2}'])
    assert isinstance(found, BadLine)
    assert "this program reads format 1" in found.reason


@pytest.mark.parametrize("member", ['"sampling": 0', '"sampling": 1.5', '"values": "secret"', '"started": "now"'])
def test_a_header_with_members_that_make_no_sense_is_a_bad_line(member: str) -> None:
    (found,) = read_capture([f'{{"capture": 1, {member}}}'])
    assert isinstance(found, BadLine)


def test_headers_of_joined_parts_are_all_read() -> None:
    parts = [CaptureHeader(dropped=count) for count in (0, 3)]
    assert list(read_capture([part.to_json() for part in parts])) == parts


def test_a_charge_that_is_not_finite_is_refused() -> None:
    line = '{"at": 1, "operation": "read", "charge": 1e999}'
    with pytest.raises(NotARequest):
        CapturedRequest.from_json(line)
