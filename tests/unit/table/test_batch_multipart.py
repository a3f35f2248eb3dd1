"""`$batch` on the wire, as the official client writes and reads it."""

from __future__ import annotations

from contextlib import suppress
from email import message_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.storage.multipart import PartResponse, boundary_of
from asterism.apis.storage.refusals import Refusal
from asterism.apis.table.entities.batch_multipart import read_batch, write_batch

TYPE = "multipart/mixed; boundary=batch_1"


def batch(*operations: bytes, end: bytes = b"\r\n") -> bytes:
    head = b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: %d\r\n\r\n"
    inner = b"".join(
        b"--changeset_2\r\n%b%b\r\n" % (head % number, operation) for number, operation in enumerate(operations)
    )
    text = (
        b"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n"
        + inner
        + b"--changeset_2--\r\n\r\n--batch_1--\r\n"
    )
    return text.replace(b"\r\n", end)


PUT = (
    b"PUT https://host/acct/t(PartitionKey='p%27%27q',RowKey='a%2Fb')?x=1 HTTP/1.1\r\n"
    b'If-Match: *\r\nContent-Length: 7\r\n\r\n{"a":1}'
)
DELETE = b"DELETE http://host/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\nif-match: W/\"x\"\r\n\r\n"
MERGE = b"POST http://host/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\nX-HTTP-Method: MERGE\r\n\r\n{\"b\":2}"


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_operations_are_read_with_their_targets_headers_and_bodies(end: bytes) -> None:
    put, delete, merge = read_batch(TYPE, batch(PUT, DELETE, MERGE, end=end))
    assert (put.method, put.target, put.query_string) == ("PUT", "t(PartitionKey='p''q',RowKey='a/b')", "x=1")
    assert (put.headers["if-match"], put.body) == ("*", b'{"a":1}')
    assert (delete.method, delete.headers["if-match"], delete.body.strip()) == ("DELETE", 'W/"x"', b"")
    assert (merge.method, merge.body) == ("MERGE", b'{"b":2}')


def test_operations_without_a_change_set_around_them_are_read_too() -> None:
    request = b"GET http://host/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n"
    body = b"--batch_1\r\nContent-Type: application/http\r\n\r\n" + request + b"\r\n--batch_1--"
    (read,) = read_batch(TYPE, body)
    assert read.method == "GET"


def test_an_empty_change_set_has_no_operations() -> None:
    assert read_batch(TYPE, batch()) == []


@pytest.mark.parametrize("inner", [b"batch_1_set", b"batch_1--x"])
def test_a_boundary_may_begin_with_another(inner: bytes) -> None:
    put, delete = read_batch(TYPE, batch(PUT, DELETE).replace(b"changeset_2", inner))
    assert (put.method, delete.method) == ("PUT", "DELETE")


def test_two_change_sets_are_refused_for_they_would_be_two_transactions() -> None:
    twice = batch(PUT).removesuffix(b"--batch_1--\r\n") + batch(DELETE)
    with pytest.raises(Refusal) as refused:
        read_batch(TYPE, twice)
    assert refused.value.code == "InvalidInput"


def test_of_too_many_operations_only_one_too_many_is_read() -> None:
    assert len(read_batch(TYPE, batch(*[DELETE] * 100))) == 100
    body = batch(*[DELETE] * 101, *[b"no request line"] * 1000)
    assert len(read_batch(TYPE, body)) == 101


def test_any_number_of_boundaries_that_begin_with_another_are_read_once() -> None:
    body = b"--batch_1\r\n" + b"--batch_11\r\n" * 200_000 + b"--batch_1--"
    with pytest.raises(Refusal):
        read_batch(TYPE, body)


def test_an_address_without_end_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        read_batch(TYPE, batch(b"GET http://host/" + b"t" * 100_000 + b" HTTP/1.1\r\n\r\n"))
    assert refused.value.code == "InvalidInput"


def test_an_operation_with_headers_without_end_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        read_batch(TYPE, batch(b"GET http://host/t HTTP/1.1\r\n" + b"a:\r\n" * 100_000 + b"\r\n"))
    assert refused.value.code == "InvalidInput"


def test_a_boundary_may_be_quoted() -> None:
    assert boundary_of('multipart/mixed; boundary="a b"') == b"a b"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (None, batch(PUT)),
        ("application/json", batch(PUT)),
        ("multipart/mixed; boundary=other", batch(PUT)),
        (TYPE, b""),
        (TYPE, batch(b"nonsense")),
        (TYPE, batch(b"")),
    ],
)
def test_what_is_no_batch_is_refused(content_type: str | None, body: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        read_batch(content_type, body)
    assert refused.value.code == "InvalidInput"


@given(st.integers(0, len(batch(PUT, DELETE)) - 16))
def test_a_batch_that_is_cut_in_the_middle_is_refused(length: int) -> None:
    with pytest.raises(Refusal):
        read_batch(TYPE, batch(PUT, DELETE)[:length])


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_are_a_batch_or_refused(noise: bytes, at: int) -> None:
    whole = batch(PUT, DELETE)
    with suppress(Refusal):
        read_batch(TYPE, whole[:at] + noise + whole[at:])


def test_an_answer_is_parts_in_a_change_set_in_a_batch() -> None:
    responses = [PartResponse(204, [("Content-ID", "0"), ("ETag", "x")]), PartResponse(201, [], b'{"a":1}')]
    content_type, body = write_batch(responses, guid="3")
    outer = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    (change_set,) = outer.get_payload()
    first, second = change_set.get_payload()
    assert first.get_content_type() == "application/http"
    assert first.get_payload().startswith("HTTP/1.1 204 No Content\r\nContent-ID: 0\r\nETag: x\r\n\r\n")
    assert second.get_payload().endswith('\r\n\r\n{"a":1}')
