"""CRC-64 as Azure Storage computes it: CRC-64/NVME, the polynomial 0x9A6C9329AC4BC9B5 reflected."""

from __future__ import annotations

from typing import Final

import anycrc

CRC64_BYTES: Final = 8

_CRC64: Final = anycrc.Model("CRC64-NVME")


def crc64(data: bytes | bytearray | memoryview, start: int = 0) -> int:
    """Return the checksum of `data`; `start` is the checksum of the bytes before it."""
    checksum: int = _CRC64.calc(data, start)
    return checksum


def crc64_bytes(checksum: int) -> bytes:
    """Return a checksum in the order in which headers and structured bodies carry it: least significant byte first."""
    return checksum.to_bytes(CRC64_BYTES, "little")
