"""Cost of an operation in request units: a model of the service's prices, described in docs/request-units.md.

A charge depends only on the operation's own sizes and counts, never on the amount of stored data or on other requests.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_KILOBYTE = 1024

# Reading an account, a database, a container or its ranges.
METADATA: Final = 1.0
# Changing one of them costs the service about as much as writing a small item; changing an offer, twice that.
METADATA_CHANGE: Final = 4.95
OFFER_CHANGE: Final = 9.9
# A point read of a missing item (404), or of one that the client has already (304).
MISS: Final = 1.0
# A query plan is computed without touching data.
QUERY_PLAN: Final = 1.0

_READ = 1.0
# The service documents 1 RU for 1 KB and 10 RU for 100 KB.
_READ_PER_FURTHER_KILOBYTE = 9 / 99

_WRITE = 5.0
# The service documents about 5 RU for 1 KB and 50 RU for 100 KB.
_WRITE_PER_FURTHER_KILOBYTE = 45 / 99
# Ten indexed paths bring a 1 KB item to the 5.5 RU that are common on the service.
_WRITE_PER_INDEXED_PATH = 0.05

# The smallest query on the service costs a little above 2 RU, one that returns a small item about 2.8.
_QUERY = 2.25
_QUERY_PER_INDEX_LOOKUP = 0.1
_PER_ITEM_LOADED = 0.02
_PER_KILOBYTE_LOADED = 0.03
_PER_RESULT = 0.005
_PER_KILOBYTE_RETURNED = 0.01
# A scan loads an item of 1 KB for 0.05 RU in a few microseconds; a step takes up to one microsecond.
_PER_THOUSAND_STEPS = 1.0
_STEPS_INCLUDED = 1_000
_STEPS_INCLUDED_PER_ITEM = 100
# Makes functions of an item's own strings free.
_STEPS_INCLUDED_PER_KILOBYTE = 100
# The price of a returned kilobyte.
_PER_KILOBYTE_BUILT = 0.01
_BYTES_INCLUDED = 65_536
_BYTES_INCLUDED_PER_BYTE = 2

_FEED_PAGE = 1.0


def _further_kilobytes(size_bytes: int) -> int:
    """Return the kilobytes beyond the first, rounded up; an empty item counts as one of 1 KB."""
    return (size_bytes - 1) // _KILOBYTE if size_bytes > _KILOBYTE else 0


def point_read(item_bytes: int) -> float:
    if item_bytes <= _KILOBYTE:
        return _READ
    return _point_read((item_bytes - 1) // _KILOBYTE)


# Rounding takes longer than the rest of the computation, and most reads and writes are alike.
@lru_cache(maxsize=1024)
def _point_read(further_kilobytes: int) -> float:
    return round(_READ + _READ_PER_FURTHER_KILOBYTE * further_kilobytes, 2)


def write(item_bytes: int, indexed_paths: int) -> float:
    """Return the charge of a create, or of an upsert that creates. `indexed_paths` counts the index entries written."""
    return _write(_further_kilobytes(item_bytes), indexed_paths)


@lru_cache(maxsize=1024)
def _write(further_kilobytes: int, indexed_paths: int) -> float:
    size_part = _WRITE + _WRITE_PER_FURTHER_KILOBYTE * further_kilobytes
    return round(size_part + _WRITE_PER_INDEXED_PATH * indexed_paths, 2)


def replace(*, before_bytes: int, after_bytes: int, indexed_paths: int) -> float:
    """Return the charge of a replace, a patch, or an upsert that finds the item: one version is removed, one added.

    `indexed_paths` counts the index entries removed and added.
    """
    versions = _version(before_bytes) + _version(after_bytes)
    return round(versions + _WRITE_PER_INDEXED_PATH * indexed_paths, 2)


def delete(item_bytes: int, indexed_paths: int) -> float:
    return write(item_bytes, indexed_paths)


def _version(item_bytes: int) -> float:
    return _WRITE + _WRITE_PER_FURTHER_KILOBYTE * _further_kilobytes(item_bytes)


def query(
    *,
    index_lookups: int,
    items_loaded: int,
    bytes_loaded: int,
    results: int,
    bytes_returned: int,
    steps: int = 0,
    bytes_built: int = 0,
) -> float:
    """Return the charge of one page of a query in one partition: for lookups, loaded items, computation and results.

    `steps` counts the rows that were made and the work of functions, `bytes_built` the size of intermediate values; the
    price of the items includes what an ordinary query needs of both.
    """
    looked_up = _QUERY_PER_INDEX_LOOKUP * index_lookups
    loaded = _PER_ITEM_LOADED * items_loaded + _PER_KILOBYTE_LOADED * bytes_loaded / _KILOBYTE
    returned = _PER_RESULT * results + _PER_KILOBYTE_RETURNED * bytes_returned / _KILOBYTE
    steps_of_items = _STEPS_INCLUDED_PER_ITEM * items_loaded + _STEPS_INCLUDED_PER_KILOBYTE * bytes_loaded / _KILOBYTE
    further_steps = steps - _STEPS_INCLUDED - steps_of_items
    further_bytes = bytes_built - _BYTES_INCLUDED - _BYTES_INCLUDED_PER_BYTE * bytes_loaded
    computed = _PER_THOUSAND_STEPS * max(further_steps, 0) / 1000 + _PER_KILOBYTE_BUILT * max(further_bytes, 0) / 1024
    return round(_QUERY + looked_up + loaded + computed + returned, 2)


def feed_page(*, items: int, page_bytes: int) -> float:
    """Return the charge of one page of a read feed or change feed: items are loaded and returned, without lookups."""
    per_item = (_PER_ITEM_LOADED + _PER_RESULT) * items
    per_kilobyte = (_PER_KILOBYTE_LOADED + _PER_KILOBYTE_RETURNED) * page_bytes / _KILOBYTE
    return round(_FEED_PAGE + per_item + per_kilobyte, 2)
