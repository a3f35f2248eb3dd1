"""Messages between the server and a script host: a length and that many bytes, over a pipe or a socket."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct("<I")
_SECONDS = struct.Struct("<d")
_NUMBER = struct.Struct("<I")

# Buffer allocated before each read; larger blocks come from the system and cost more than the read.
RECEIVE_BYTES = 64 * 1024

# Verbs of the server. START and TURN carry the seconds that the turn may take, CALL and CALLS a function's number.
START, TURN, COMPILE, CALL, CALLS = b"S", b"T", b"C", b"F", b"M"
# Verbs of the host. FINISHED carries the answer and both bodies; STOPPED the reason for which the engine stopped.
ANSWER, FINISHED, STOPPED, REFUSED = b"A", b"D", b"X", b"!"


def framed(*parts: bytes) -> bytes:
    payload = parts[0] if len(parts) == 1 else b"".join(parts)
    return _LENGTH.pack(len(payload)) + payload


def framed_answer(text: bytes) -> bytes:
    """Return `framed(ANSWER, text)`, faster for the many short answers."""
    return _LENGTH.pack(len(text) + 1) + ANSWER + text


def bytes_missing(received: bytearray) -> int:
    """Return the number of bytes that the first message still lacks; at least one until its length is known."""
    if len(received) < _LENGTH.size:
        return _LENGTH.size - len(received)
    (length,) = _LENGTH.unpack_from(received)
    return max(0, _LENGTH.size + int(length) - len(received))


def payload_of(received: bytearray) -> bytes:
    return bytes(memoryview(received)[_LENGTH.size :])


def receive_blocking(descriptor: int) -> bytes | None:
    """Return the next message; None if the peer is gone. Each message is answered before the next one is sent."""
    first = os.read(descriptor, RECEIVE_BYTES)
    # Nearly every message arrives in one piece.
    if len(first) >= _LENGTH.size and _LENGTH.unpack_from(first)[0] == len(first) - _LENGTH.size:
        return first[_LENGTH.size :]
    received = bytearray(first)
    chunk = first
    while chunk and bytes_missing(received):
        chunk = os.read(descriptor, RECEIVE_BYTES)
        received += chunk
    return payload_of(received) if chunk else None


def send_blocking(descriptor: int, message: bytes) -> None:
    sent = os.write(descriptor, message)
    while sent < len(message):
        sent += os.write(descriptor, message[sent : sent + RECEIVE_BYTES])


def seconds_bytes(seconds: float) -> bytes:
    return _SECONDS.pack(seconds)


def split_seconds(payload: bytes) -> tuple[float, bytes]:
    """Return the seconds and the rest of a START or TURN message, without its verb."""
    return _SECONDS.unpack_from(payload, 1)[0], payload[1 + _SECONDS.size :]


def number_bytes(number: int) -> bytes:
    return _NUMBER.pack(number)


def split_number(payload: bytes) -> tuple[int, bytes]:
    """Return the number and the rest of a CALL or CALLS message, without its verb."""
    return _NUMBER.unpack_from(payload, 1)[0], payload[1 + _NUMBER.size :]


def finished_bytes(answer: bytes, *, request: bytes, response: bytes) -> bytes:
    return _NUMBER.pack(len(answer)) + _NUMBER.pack(len(request)) + answer + request + response


def split_finished(payload: bytes) -> tuple[bytes, bytes, bytes]:
    """Return answer, request and response of a FINISHED message."""
    (answer_length,) = _NUMBER.unpack_from(payload, 1)
    (request_length,) = _NUMBER.unpack_from(payload, 1 + _NUMBER.size)
    start = 1 + 2 * _NUMBER.size
    middle = start + answer_length
    end = middle + request_length
    return payload[start:middle], payload[middle:end], payload[end:]
