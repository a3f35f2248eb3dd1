"""Queries of a replay: the text and parameters of a query that a captured request describes.

A capture keeps the paths that a query filters and sorts by, with the values, but not the whole query. The query that is
made of them reads the same items through the same indexes; conditions that the capture does not describe are left out,
so the page is bounded by the number of results that the captured one had.
"""

from __future__ import annotations

import re
from typing import Any, Final

from asterism.advisor.captured_request import CapturedRequest
from asterism.limits import PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX

# The text before FROM, if it refers to the items by the usual name and holds no constants.
_SELECT_LIST: Final = re.compile(r"^\s*SELECT\s+(?!TOP\b)([^@]+?)\s+FROM\s+c\b", re.IGNORECASE)
_LIMITED: Final = re.compile(r"\b(TOP|LIMIT)\b", re.IGNORECASE)
_DESCENDING: Final = re.compile(r"\bDESC\b", re.IGNORECASE)
# A path through the elements of an array: the capture does not say which element the condition is about.
_ELEMENTS: Final = "[]"


def query_body(request: CapturedRequest) -> dict[str, Any]:
    """Return the body of a request for the query."""
    parameters: list[dict[str, Any]] = []

    def parameter(value: object) -> str:
        parameters.append({"name": f"@p{len(parameters)}", "value": value})
        return f"@p{len(parameters) - 1}"

    conditions: list[str] = []
    for path, values in request.equal.items():
        if _ELEMENTS not in path:
            names = [parameter(value) for value in values]
            comparison = f"= {names[0]}" if len(names) == 1 else f"IN ({', '.join(names)})"
            conditions.append(f"{reference(path)} {comparison}")
    for path, (low, high) in request.between.items():
        if _ELEMENTS not in path:
            conditions += [f"{reference(path)} >= {parameter(low)}"] if low is not None else []
            conditions += [f"{reference(path)} <= {parameter(high)}"] if high is not None else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return {"query": f"SELECT {_select_list(request)} FROM c{where}{_order(request)}", "parameters": parameters}


def query_by_id(item_id: str) -> dict[str, Any]:
    """Return the body of the query of a client that knows the id of an item and not its partition key."""
    return {"query": "SELECT * FROM c WHERE c.id = @id", "parameters": [{"name": "@id", "value": item_id}]}


def page_items(request: CapturedRequest) -> int:
    """Return how many items the page of a query or feed may have: the usual number, unless the query has a limit of its
    own. With as many as it found it would end at the last one, without a look into the partitions behind it."""
    found = request.results or 0
    if found and request.shape is not None and _LIMITED.search(request.shape):
        return min(found, PAGE_ITEMS_MAX)
    return min(max(found, PAGE_ITEMS_DEFAULT), PAGE_ITEMS_MAX)


def reference(path: str) -> str:
    """Return the expression for the value at a path: `c["address"]["city"]`."""
    return "c" + "".join(f'["{_escaped(name)}"]' for name in path.strip("/").split("/"))


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _select_list(request: CapturedRequest) -> str:
    found = None if request.shape is None else _SELECT_LIST.match(request.shape)
    return "*" if found is None else found.group(1)


def _order(request: CapturedRequest) -> str:
    # Sorting by several paths needs a composite index, which scratch containers do not have.
    if not request.order:
        return ""
    direction = " DESC" if request.shape is not None and _DESCENDING.search(request.shape) else ""
    return f" ORDER BY {reference(request.order[0])}{direction}"
