"""Results of traversals as tables: vertices and edges by their properties, paths by the elements on them."""

from __future__ import annotations

import json
from typing import Any

from asterism.cli.query import print_results


def print_elements(results: list[Any]) -> None:
    print_results([row_of(result) for result in results])


def row_of(result: Any) -> Any:
    """Return a result as a row: an element or a path as columns, anything else as it is."""
    if not isinstance(result, dict):
        return result
    match result.get("type"):
        case "vertex":
            return {"id": result.get("id"), "label": result.get("label"), **_values(result.get("properties"))}
        case "edge":
            ends = {"from": result.get("outV"), "to": result.get("inV")}
            return {"id": result.get("id"), "label": result.get("label"), **ends, **(result.get("properties") or {})}
    if set(result) == {"labels", "objects"} and isinstance(result["objects"], list):
        return {"path": _path_text(result["objects"])}
    return result


def _values(properties: Any) -> dict[str, Any]:
    """Return the values of a vertex's properties: a list only of a property that has several."""
    found = {}
    for name, stored in (properties or {}).items():
        values = [entry["value"] if isinstance(entry, dict) and "value" in entry else entry for entry in stored]
        found[name] = values[0] if len(values) == 1 else values
    return found


def _path_text(objects: list[Any]) -> str:
    """Return the vertices of a path by their ids, with the labels of the edges between them."""
    text, ends_with_edge = "", True
    for element in objects:
        is_edge = isinstance(element, dict) and element.get("type") == "edge"
        if is_edge:
            text += f" —{element.get('label')}→ "
        else:
            text += _name(element) if ends_with_edge else f" → {_name(element)}"
        ends_with_edge = is_edge
    return text.strip()


def _name(element: Any) -> str:
    if isinstance(element, dict) and "id" in element:
        return str(element["id"])
    return element if isinstance(element, str) else json.dumps(element, ensure_ascii=False)
