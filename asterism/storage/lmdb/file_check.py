"""Checks of a store's files before LMDB maps them into memory.

LMDB trusts its header. It opens a data file that was cut short, and the first read behind its end is a bus error that
no handler can recover from; it takes an empty one for a new store. Both are detected here, with plain reads.

The layout is LMDB's, version 1, on a 64-bit machine: two header pages with a meta record each, of which the one with
the higher transaction number is valid.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from asterism.storage.contract import EngineFailed

DATA_FILE = "data.mdb"
LOCK_FILE = "lock.mdb"
# Made when a store is complete for the first time, and never removed: proof that a data file existed.
MARKER_FILE = "store.marker"
_MARKER_TEXT = b"This directory holds an Asterism store; its data is in data.mdb.\n"

# Number, padding, flags and the bounds of the free space, which contain the length of an overflow page.
_PAGE = struct.Struct("=QHHHH")
_NODE = struct.Struct("=HHHH")
_NUMBER = struct.Struct("=Q")
# Magic, version, two fields of the map, a record of 48 bytes each for the tree of free pages and for the tree of data
# (the first begins with the page size, each ends with its root), the last page in use and the transaction.
_META = struct.Struct("=II16xI36xQ48xQQ")
_MAGIC = 0xBEEFC0DE
_VERSION = 1
_BRANCH, _LEAF, _META_PAGE = 0x01, 0x02, 0x08
_NODE_IN_OVERFLOW = 0x01
_NO_PAGE = 2**64 - 1
_PAGE_BYTES_MIN, _PAGE_BYTES_MAX = 512, 65536
# Another process may write while the file is checked.
_ATTEMPTS_MAX = 10

_RESTORE = "restore it from a copy, or remove the directory to start with an empty store"


@dataclass(frozen=True, slots=True)
class _Meta:
    page_bytes: int
    free_root: int
    last_page: int
    transaction: int


class _Damaged(Exception):
    """The file contradicts its header."""


def check_data_file(directory: Path) -> None:
    """Raise EngineFailed for a data file that must not be opened. A missing file is fine, if none existed before."""
    path = directory / DATA_FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if is_marked(directory):
            raise EngineFailed(f"{DATA_FILE} is missing from {directory}, which has held a store; {_RESTORE}") from None
        return
    except OSError as error:
        raise EngineFailed(f"{path} cannot be read: {error.strerror}") from None
    try:
        _check(descriptor, directory)
    except OSError as error:
        raise EngineFailed(f"{path} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def mark_store(directory: Path) -> None:
    """Record that the directory has a data file."""
    # Not worth failing for on a full disk.
    with contextlib.suppress(OSError):
        descriptor = os.open(directory / MARKER_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, _MARKER_TEXT)
        finally:
            os.close(descriptor)


def is_marked(directory: Path) -> bool:
    return (directory / MARKER_FILE).exists()


def allocate_lock_file(directory: Path, *, lock_bytes: int) -> None:
    """Allocate all blocks of the lock file: it is written through a map, and a hole in it is a bus error once the disk
    is full.

    Must be called before the environment is opened. Closing a file drops the locks of this process on it, so a file
    that has all of its blocks is not opened.
    """
    path = directory / LOCK_FILE
    found = path.stat() if path.exists() else None
    if found is not None and found.st_blocks * 512 >= found.st_size >= lock_bytes:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, max(lock_bytes, found.st_size if found is not None else 0))
    except OSError as error:
        # The file system does not support it, or is full, and then the existing part of the file must suffice.
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and (found is None or not found.st_size):
            raise EngineFailed(f"the disk is full: there is no room for {path}") from None
    finally:
        os.close(descriptor)


# --- the parts ------------------------------------------------------------------------------------------------------


def _check(descriptor: int, directory: Path) -> None:
    if os.fstat(descriptor).st_size == 0:
        if is_marked(directory):
            raise EngineFailed(f"{DATA_FILE} in {directory} is empty, although it has held a store; {_RESTORE}")
        return
    if sys.maxsize < 2**32:
        return
    for _ in range(_ATTEMPTS_MAX):
        try:
            meta = _newest_meta(descriptor)
        except _Damaged as damage:
            raise EngineFailed(f"{DATA_FILE} in {directory} is damaged: {damage}; {_RESTORE}") from None
        if meta is None:
            # Not LMDB's, or of another version: LMDB reports that itself.
            return
        # The size after the header: pages are written before the header that counts them.
        file_bytes, needed_bytes = os.fstat(descriptor).st_size, (meta.last_page + 1) * meta.page_bytes
        if file_bytes >= needed_bytes or _lacks_free_pages_only(descriptor, meta, file_bytes):
            return
        if _newest_meta(descriptor) == meta:
            break
    raise EngineFailed(
        f"{DATA_FILE} in {directory} was cut short: it has {file_bytes} bytes, and its data reaches to {needed_bytes}; "
        f"{_RESTORE}"
    )


def _newest_meta(descriptor: int) -> _Meta | None:
    """Return the valid meta record; None for a file of another layout."""
    first = _read_meta(descriptor, 0)
    if first is None:
        return None
    second = _read_meta(descriptor, first.page_bytes)
    return first if second is None or second.transaction < first.transaction else second


def _read_meta(descriptor: int, offset: int) -> _Meta | None:
    header = os.pread(descriptor, _PAGE.size + _META.size, offset)
    if len(header) < _PAGE.size + _META.size:
        raise _Damaged("it ends within its header")
    _, _, flags, _, _ = _PAGE.unpack_from(header)
    magic, version, page_bytes, free_root, last_page, transaction = _META.unpack_from(header, _PAGE.size)
    if not flags & _META_PAGE or (magic, version) != (_MAGIC, _VERSION):
        return None
    if not _PAGE_BYTES_MIN <= page_bytes <= _PAGE_BYTES_MAX or page_bytes & (page_bytes - 1):
        raise _Damaged(f"its header says that pages have {page_bytes} bytes")
    return _Meta(page_bytes, free_root, last_page, transaction)


def _lacks_free_pages_only(descriptor: int, meta: _Meta, file_bytes: int) -> bool:
    """Return True if every page behind the end of the file is free. Pages that a transaction allocated and freed again
    are counted and never written."""
    pages_in_file = file_bytes // meta.page_bytes
    try:
        free = _free_pages_behind(descriptor, meta, pages_in_file)
    except (_Damaged, struct.error):
        return False
    return len(free) == meta.last_page + 1 - pages_in_file


def _free_pages_behind(descriptor: int, meta: _Meta, pages_in_file: int) -> set[int]:
    """Return the free pages from a number on. Values of the tree of free pages are lists: a count and the numbers."""
    found: set[int] = set()
    waiting = [] if meta.free_root == _NO_PAGE else [meta.free_root]
    seen: set[int] = set()
    while waiting:
        number = waiting.pop()
        if number >= pages_in_file or number in seen:
            raise _Damaged("the list of free pages is not whole")
        seen.add(number)
        page = os.pread(descriptor, meta.page_bytes, number * meta.page_bytes)
        _, _, flags, lower, _ = _PAGE.unpack_from(page)
        for pointer_at in range(_PAGE.size, lower, 2):
            (node_at,) = struct.unpack_from("=H", page, pointer_at)
            low, high, node_flags, key_bytes = _NODE.unpack_from(page, node_at)
            if flags & _BRANCH:
                waiting.append(low | high << 16 | node_flags << 32)
            elif flags & _LEAF:
                value = page[node_at + _NODE.size + key_bytes :]
                length = low | high << 16
                if node_flags & _NODE_IN_OVERFLOW:
                    (overflow,) = _NUMBER.unpack_from(value)
                    value = os.pread(descriptor, length, overflow * meta.page_bytes + _PAGE.size)
                (count,) = _NUMBER.unpack_from(value)
                numbers = struct.unpack_from(f"={count}Q", value, _NUMBER.size)
                found.update(free for free in numbers if pages_in_file <= free <= meta.last_page)
    return found
