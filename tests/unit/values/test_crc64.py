"""CRC-64 of Azure Storage: published vectors, and data in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asterism.values.crc64 import crc64, crc64_bytes

# The polynomial of CRC-64/NVME with its bits reversed.
REFLECTED_POLYNOMIAL = 0x9A6C9329AC4BC9B5
ALL_ONES = 0xFFFF_FFFF_FFFF_FFFF


def crc64_by_bits(data: bytes) -> int:
    register = ALL_ONES
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (REFLECTED_POLYNOMIAL if register & 1 else 0)
    return register ^ ALL_ONES


def test_the_check_value_of_the_algorithm() -> None:
    assert crc64(b"123456789") == 0xAE8B14860A799888


def test_nothing_has_the_checksum_zero() -> None:
    assert crc64(b"") == 0
    assert crc64_bytes(0) == bytes(8)


@given(st.binary(max_size=300))
def test_it_divides_by_the_polynomial(data: bytes) -> None:
    assert crc64(data) == crc64_by_bits(data)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_pieces_give_the_checksum_of_the_whole(left: bytes, right: bytes) -> None:
    assert crc64(right, crc64(left)) == crc64(left + right)
    assert crc64(memoryview(left + right)[len(left) :], crc64(bytearray(left))) == crc64(left + right)


def test_headers_carry_the_least_significant_byte_first() -> None:
    assert crc64_bytes(0x0102030405060708) == bytes([8, 7, 6, 5, 4, 3, 2, 1])
