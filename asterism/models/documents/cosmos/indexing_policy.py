"""The indexing policy of a container: checked, and completed with the service's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.models.documents.cosmos.policy_json import as_list, as_object, as_property_path, as_text, one_of, refuse
from asterism.models.documents.cosmos.vector_policy import complete_vector_index
from asterism.models.documents.indexes.paths import Coverage, parse_policy_path

# Limits of the service for one index.
COMPOSITE_INDEX_PATHS_MIN = 2
COMPOSITE_INDEX_PATHS_MAX = 8
# Its limits for one container: paths that are included, and as many that are excluded; composite indexes. The limit of
# those is that of the other kinds here.
PATHS_MAX = 1500
INDEXES_MAX = 100

_ETAG_PATH = '/"_etag"/?'
_SPATIAL_TYPES = ("Point", "LineString", "Polygon", "MultiPolygon")


def complete_indexing_policy(given: Any) -> dict[str, Any]:
    """Return the policy as it is stored and echoed: with defaults, without what the service ignores by now."""
    policy = as_object(given if given is not None else {}, what="indexingPolicy")
    # The service has turned "lazy" into "consistent" for all new containers.
    mode = one_of(
        policy.get("indexingMode", "consistent"),
        ("consistent", "none", "lazy"),
        refusal=f"The indexing mode '{policy.get('indexingMode')}' is invalid.",
    ).replace("lazy", "consistent")
    automatic = policy.get("automatic", True)
    if not isinstance(automatic, bool):
        refuse("One of the specified inputs is invalid: automatic must be true or false.")
    included, excluded = ([], []) if mode == "none" else _complete_paths(policy)
    completed: dict[str, Any] = {
        "indexingMode": mode,
        "automatic": automatic and mode != "none",
        "includedPaths": included,
        "excludedPaths": excluded,
    }
    for name, complete in _INDEX_COMPLETIONS.items():
        if policy.get(name) is not None:
            entries = as_list(policy[name], what=name)
            _check_count(entries, INDEXES_MAX, what=name)
            completed[name] = [complete(entry) for entry in entries]
    return completed


def _check_count(entries: list[Any], count_max: int, *, what: str) -> None:
    if len(entries) > count_max:
        refuse(f"The indexing policy has {len(entries)} entries in {what}, and may have {count_max}.")


def _complete_paths(policy: Mapping[str, Any]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    included = _paths(policy, "includedPaths")
    excluded = _paths(policy, "excludedPaths")
    if not included and "/*" not in excluded:
        included = ["/*"]
    if "/*" not in included and "/*" not in excluded:
        refuse('The mandatory indexing path "/*" is in neither the included nor the excluded paths.')
    if _ETAG_PATH not in excluded and _ETAG_PATH not in included:
        excluded.append(_ETAG_PATH)
    seen: dict[tuple[object, Coverage], str] = {}
    in_both = set(included) & set(excluded)
    for path in included + excluded:
        if seen.setdefault(parse_policy_path(path), path) != path or path in in_both:
            refuse(f"The indexing path '{path}' is given more than once.")
    return [{"path": path} for path in included], [{"path": path} for path in excluded]


def _paths(policy: Mapping[str, Any], name: str) -> list[str]:
    """Return the paths alone: the service has ignored kinds and precisions of the entries since 2018."""
    entries = policy.get(name)
    paths = []
    given = as_list(entries if entries is not None else [], what=name)
    _check_count(given, PATHS_MAX, what=name)
    for entry in given:
        path = as_text(as_object(entry, what=name).get("path"), what="path")
        parse_policy_path(path)
        paths.append("/*" if path == "/" else path)
    return list(dict.fromkeys(paths))


def _complete_composite_index(given: Any) -> list[dict[str, Any]]:
    entries = [as_object(entry, what="compositeIndexes") for entry in as_list(given, what="compositeIndexes")]
    if not COMPOSITE_INDEX_PATHS_MIN <= len(entries) <= COMPOSITE_INDEX_PATHS_MAX:
        refuse(
            f"A composite index must have {COMPOSITE_INDEX_PATHS_MIN} to {COMPOSITE_INDEX_PATHS_MAX} paths, "
            f"and one has {len(entries)}."
        )
    for entry in entries:
        as_property_path(
            entry.get("path"), refusal=f"The composite indexing path '{entry.get('path')}' could not be accepted."
        )
        order = entry.get("order", "ascending")
        entry["order"] = one_of(
            order, ("ascending", "descending"), refusal=f"The composite index order '{order}' is invalid."
        )
    return entries


def _complete_spatial_index(given: Any) -> dict[str, Any]:
    index = as_object(given, what="spatialIndexes")
    parse_policy_path(as_text(index.get("path"), what="path"))
    types = as_list(index.get("types", list(_SPATIAL_TYPES)), what="types")
    index["types"] = [one_of(name, _SPATIAL_TYPES, refusal=f"The spatial type '{name}' is invalid.") for name in types]
    return index


def _complete_full_text_index(given: Any) -> dict[str, Any]:
    index = as_object(given, what="fullTextIndexes")
    path = index.get("path")
    as_property_path(path, refusal=f"The Full Text Indexing Policy contains an invalid Path: {path}.")
    return index


_INDEX_COMPLETIONS: dict[str, Callable[[Any], Any]] = {
    "compositeIndexes": _complete_composite_index,
    "spatialIndexes": _complete_spatial_index,
    "vectorIndexes": complete_vector_index,
    "fullTextIndexes": _complete_full_text_index,
}


def check_full_text_indexes(indexes: list[dict[str, Any]], policy: Mapping[str, Any]) -> None:
    paths = {entry["path"] for entry in policy.get("fullTextPaths", [])}
    for index in indexes:
        if index["path"] not in paths:
            refuse(f"The path of the full text index {index['path']} is not in the full text policy.")


def check_spatial_indexes(indexes: list[dict[str, Any]], *, geospatial_type: str) -> None:
    """Refuse what does not fit the container's geospatial type: a plane has borders, and the Earth has none."""
    for index in indexes:
        box = index.get("boundingBox")
        path = index["path"].replace("/", "\\/")
        if geospatial_type == "Geography":
            if box is not None:
                refuse("Incorrect parameter 'boundingBox' specified for 'Geography' collection")
        elif box is None:
            refuse(f"Required parameter 'boundingBox' for 'Geometry' collection is missing in spatial path '{path}'")
        else:
            _check_bounding_box(as_object(box, what="boundingBox"), path)


def _check_bounding_box(box: Mapping[str, Any], path: str) -> None:
    for name in ("xmin", "ymin", "xmax", "ymax"):
        if isinstance(box.get(name), bool) or not isinstance(box.get(name), int | float):
            refuse(f"Required parameter '{name}' in 'boundingBox' for spatial path '{path}' is missing or no number")
    for axis in ("x", "y"):
        if box[f"{axis}max"] <= box[f"{axis}min"]:
            refuse(
                f"The value of parameter '{axis}max' must be greater than the value of parameter '{axis}min' in "
                f"'boundingBox' for spatial path '{path}'"
            )
