"""Indexes that answer searches for what is near a point, and the metadata of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.geo.near import Found, NearSearch
from asterism.languages.mongo.geo.parse import to_double
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.data.selection import Hit

_GEO_KINDS = ("2d", "2dsphere")


def near_index(record: CollectionRecord, search: NearSearch, implied: frozenset[str]) -> IndexRecord:
    """Return the index that answers a search; MongoFailure 291 without one."""
    if "timeseries" in record.options:
        raise MongoFailure(5626500, "$geoNear, $near, and $nearSphere are not allowed in this context")
    for kind in search.index_kinds:
        for index in record.indexes:
            if not _is_usable(index, implied) or index.key.get(search.path) != kind:
                continue
            if kind == "2d":
                _check_plane(index, search)
            return index
    raise MongoFailure(
        291,
        f"error processing query: ns={record.namespace} planner returned error: unable to find index for $geoNear "
        f"query on '{search.path}'",
    )


def _is_usable(index: IndexRecord, implied: frozenset[str]) -> bool:
    is_whole = "partialFilterExpression" not in index.options or index.name in implied
    return index.is_ready and not index.is_hidden and is_whole


def _check_plane(index: IndexRecord, search: NearSearch) -> None:
    low, high = to_double(index.options.get("min", -180)), to_double(index.options.get("max", 180))
    if not (low <= search.point.x <= high and low <= search.point.y <= high):
        raise MongoFailure(16433, f"point not in interval of [ {low}, {high} ]")


def only_geo_path(record: CollectionRecord) -> str:
    """Return the field that $geoNear searches when it names none: the only one with an index of its kind."""
    for kind in _GEO_KINDS:
        paths = [path for index in record.indexes for path, value in index.key.items() if value == kind]
        if len(paths) > 1:
            raise MongoFailure(27, f"There is more than one {kind} index on {record.name}; unsure which to use")
        if paths:
            return paths[0]
    raise MongoFailure(27, "$geoNear requires a 2d or 2dsphere index, but none were found")


def metadata_of(found: Found) -> Document:
    return {"geoNearDistance": found.distance, "geoNearPoint": found.location}


def found_of(hit: Hit) -> Found:
    """Return the nearest geometry of a document that a search has found."""
    assert hit.metadata is not None, "a search gives its results metadata"
    return Found(hit.metadata["geoNearDistance"], hit.metadata["geoNearPoint"])
