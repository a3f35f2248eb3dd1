"""Structured bodies: read by the official client's decoder, written by its encoder, in pieces of any length."""

from __future__ import annotations

import io

import pytest
from azure.storage.blob._shared import streams
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.storage.structured_body import (
    STRUCTURED_BODY,
    MalformedStructuredBody,
    StructuredBodyDecoder,
    StructuredBodyEncoder,
    StructuredBodyMismatch,
    is_structured_body,
)
from asterism.values.crc64 import crc64

CONTENT = bytes(range(256)) * 3


@pytest.fixture(autouse=True)
def clients_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the client a checksum, for which it needs an extension that is not installed here."""
    monkeypatch.setattr(streams, "calculate_crc64", crc64)


def in_pieces(data: bytes, piece_bytes: int) -> list[bytes]:
    return [data[start : start + piece_bytes] for start in range(0, len(data), piece_bytes)]


def encoded(content: bytes, *, segment_bytes: int, piece_bytes: int) -> bytes:
    encoder = StructuredBodyEncoder(len(content), segment_bytes=segment_bytes)
    body = b"".join(bytes(part) for piece in in_pieces(content, piece_bytes) for part in encoder.encode(piece))
    body += encoder.finish()
    assert len(body) == encoder.body_bytes
    return body


def decoded(body: bytes, *, piece_bytes: int, content_bytes: int | None = None) -> bytes:
    decoder = StructuredBodyDecoder(body_bytes=len(body), content_bytes=content_bytes)
    content = b"".join(bytes(part) for piece in in_pieces(body, piece_bytes) for part in decoder.feed(piece))
    decoder.finish()
    assert decoder.content_bytes == len(content)
    return content


def written_by_the_client(content: bytes, *, segment_bytes: int, has_checksums: bool = True) -> bytes:
    flags = streams.StructuredMessageProperties(int(has_checksums))
    return streams.StructuredMessageEncodeStream(
        io.BytesIO(content), len(content), flags, segment_size=segment_bytes
    ).read()


LENGTHS = st.integers(min_value=1, max_value=300)


@given(st.binary(max_size=300), LENGTHS, LENGTHS)
def test_the_client_writes_the_same_bytes(content: bytes, segment_bytes: int, piece_bytes: int) -> None:
    body = encoded(content, segment_bytes=segment_bytes, piece_bytes=piece_bytes)
    assert body == written_by_the_client(content, segment_bytes=segment_bytes)


@given(st.binary(max_size=300), LENGTHS, LENGTHS, st.booleans())
def test_content_comes_back_from_pieces_of_any_length(
    content: bytes, segment_bytes: int, piece_bytes: int, has_checksums: bool
) -> None:
    body = written_by_the_client(content, segment_bytes=segment_bytes, has_checksums=has_checksums)
    assert decoded(body, piece_bytes=piece_bytes, content_bytes=len(content)) == content


def test_the_client_reads_what_is_written_here() -> None:
    body = encoded(CONTENT, segment_bytes=100, piece_bytes=33)
    reader = streams.StructuredMessageDecoder(iter(in_pieces(body, 50)), len(body))
    assert reader.read() == CONTENT


@given(st.integers(min_value=0, max_value=767))
def test_a_changed_byte_of_content_is_found_in_its_segment(position: int) -> None:
    body = bytearray(encoded(CONTENT, segment_bytes=256, piece_bytes=1000))
    segment = position // 256
    body[13 + 10 + segment * 18 + position] ^= 1
    with pytest.raises(StructuredBodyMismatch) as caught:
        decoded(bytes(body), piece_bytes=100)
    assert caught.value.segment == segment + 1


def test_a_changed_trailer_is_a_mismatch_of_the_message() -> None:
    body = bytearray(encoded(CONTENT, segment_bytes=256, piece_bytes=1000))
    body[-1] ^= 1
    with pytest.raises(StructuredBodyMismatch) as caught:
        decoded(bytes(body), piece_bytes=100)
    assert caught.value.segment is None


@given(st.integers(min_value=0, max_value=830))
def test_a_body_that_is_cut_off_is_refused(kept_bytes: int) -> None:
    body = encoded(CONTENT, segment_bytes=256, piece_bytes=1000)
    decoder = StructuredBodyDecoder()
    decoder.feed(body[:kept_bytes])
    with pytest.raises(MalformedStructuredBody):
        decoder.finish()


@given(st.binary(max_size=100))
def test_any_bytes_are_content_or_an_error_of_this_module(data: bytes) -> None:
    with pytest.raises((MalformedStructuredBody, StructuredBodyMismatch)):
        decoded(b"\x01" + data, piece_bytes=7)


@pytest.mark.parametrize(
    ("offset", "change", "sentence"),
    [
        (0, b"\x02", "version of the message is 2"),
        (1, b"\x00", "says that it has"),
        (9, b"\x02", "flags of the message are 2"),
        (11, b"\x00\x00", "no segments"),
        (13, b"\x05", "Segment 5 stands where segment 1 was expected"),
        (20, b"\x01", "Segment 1 is longer than the rest"),
    ],
)
def test_headers_that_do_not_fit_are_refused(offset: int, change: bytes, sentence: str) -> None:
    body = bytearray(encoded(CONTENT, segment_bytes=1000, piece_bytes=1000))
    body[offset : offset + len(change)] = change
    with pytest.raises(MalformedStructuredBody, match=sentence):
        decoded(bytes(body), piece_bytes=1000)


def test_bytes_after_the_message_are_refused() -> None:
    decoder = StructuredBodyDecoder()
    with pytest.raises(MalformedStructuredBody, match="follow the end"):
        decoder.feed(encoded(b"abc", segment_bytes=9, piece_bytes=9) + b"d")


def test_another_length_of_content_than_announced_is_refused() -> None:
    body = encoded(b"abc", segment_bytes=9, piece_bytes=9)
    with pytest.raises(MalformedStructuredBody, match="x-ms-structured-content-length says 4"):
        decoded(body, piece_bytes=9, content_bytes=4)


def test_segments_grow_where_their_number_would_not_fit() -> None:
    assert StructuredBodyEncoder(10**6, segment_bytes=1).body_bytes < 10**6 + 65_535 * 18 + 30


def test_the_header_names_the_format() -> None:
    assert is_structured_body(STRUCTURED_BODY)
    assert is_structured_body("XSM/1.0;properties=CRC64")
    assert not is_structured_body("XSM/2.0; properties=crc64")
