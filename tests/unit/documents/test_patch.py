"""Patches: what each operation does, what is refused, and that no path breaks anything."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.models.documents.cosmos.patch import PATCH_OPERATIONS_MAX, Patch, parse_operations

KEY_PATHS = (("pk",), ("deep", "key"))


def item() -> dict[str, Any]:
    return {
        "id": "i",
        "pk": "p",
        "n": 3,
        "text": "t",
        "address": {"city": "Redmond", "a/b": 1, "c~d": 2},
        "list": [1, 2, 3],
        "rows": [{"x": 1}, {"x": 2}],
        "none": None,
    }


def patched(*operations: dict[str, Any]) -> dict[str, Any]:
    changed = item()
    Patch(parse_operations(list(operations), key_paths=KEY_PATHS)).apply(changed)
    return changed


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        ({"op": "add", "path": "/new", "value": 1}, ("new",), 1),
        ({"op": "add", "path": "/n", "value": "other"}, ("n",), "other"),
        ({"op": "add", "path": "/address/zip", "value": "9"}, ("address", "zip"), "9"),
        ({"op": "add", "path": "/list/1", "value": 9}, ("list",), [1, 9, 2, 3]),
        ({"op": "add", "path": "/list/3", "value": 9}, ("list",), [1, 2, 3, 9]),
        ({"op": "add", "path": "/list/-", "value": 9}, ("list",), [1, 2, 3, 9]),
        ({"op": "add", "path": "/address/a~1b", "value": 9}, ("address", "a/b"), 9),
        ({"op": "set", "path": "/list/1", "value": 9}, ("list",), [1, 9, 3]),
        ({"op": "set", "path": "/list/-", "value": 9}, ("list",), [1, 2, 3, 9]),
        ({"op": "set", "path": "/rows/0/x", "value": 9}, ("rows", 0, "x"), 9),
        ({"op": "set", "path": "/none", "value": {"a": []}}, ("none",), {"a": []}),
        ({"op": "replace", "path": "/address/c~0d", "value": None}, ("address", "c~d"), None),
        ({"op": "replace", "path": "/list/2", "value": 9}, ("list",), [1, 2, 9]),
        ({"op": "remove", "path": "/list/0"}, ("list",), [2, 3]),
        ({"op": "incr", "path": "/n", "value": -5}, ("n",), -2),
        ({"op": "incr", "path": "/n", "value": 0.5}, ("n",), 3.5),
        ({"op": "incr", "path": "/count", "value": 2}, ("count",), 2),
        ({"op": "incr", "path": "/list/0", "value": 2}, ("list",), [3, 2, 3]),
        ({"op": "move", "from": "/text", "path": "/words"}, ("words",), "t"),
        ({"op": "move", "from": "/list/0", "path": "/list/-"}, ("list",), [2, 3, 1]),
        ({"op": "move", "from": "/n", "path": "/n"}, ("n",), 3),
    ],
)
def test_an_operation_does_what_its_name_says(
    operation: dict[str, Any], path: tuple[str | int, ...], expected: Any
) -> None:
    found: Any = patched(operation)
    for segment in path:
        found = found[segment]
    assert found == expected


def test_what_is_removed_or_moved_is_gone() -> None:
    changed = patched({"op": "remove", "path": "/text"}, {"op": "move", "from": "/n", "path": "/m"})
    assert "text" not in changed
    assert "n" not in changed
    assert changed["m"] == 3


def test_operations_see_what_those_before_them_did() -> None:
    changed = patched(
        {"op": "add", "path": "/box", "value": {}},
        {"op": "add", "path": "/box/list", "value": []},
        {"op": "add", "path": "/box/list/-", "value": 1},
        {"op": "incr", "path": "/box/list/0", "value": 1},
    )
    assert changed["box"] == {"list": [2]}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "remove", "path": "/missing"},
        {"op": "remove", "path": "/list/3"},
        {"op": "remove", "path": "/list/-"},
        {"op": "add", "path": "/list/4", "value": 1},
        {"op": "add", "path": "/list/01", "value": 1},
        {"op": "add", "path": "/list/-1", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "add", "path": "/list/" + "9" * 5000, "value": 1},
        {"op": "set", "path": "/list/3", "value": 1},
        {"op": "set", "path": "/a/b/c", "value": 1},
        {"op": "set", "path": "/n/x", "value": 1},
        {"op": "set", "path": "/none/x", "value": 1},
        {"op": "incr", "path": "/text", "value": 1},
        {"op": "incr", "path": "/n", "value": "1"},
        {"op": "incr", "path": "/n", "value": True},
        {"op": "incr", "path": "/n"},
        {"op": "move", "from": "/missing", "path": "/x"},
        {"op": "move", "from": "/address", "path": "/address/city"},
        {"op": "move", "from": "/list/-", "path": "/x"},
        {"op": "move", "path": "/x"},
        {"op": "add", "path": "/x"},
        {"op": "add", "path": "x", "value": 1},
        {"op": "add", "path": "/", "value": 1},
        {"op": "add", "path": "", "value": 1},
        {"op": "add", "path": 5, "value": 1},
        {"op": "test", "path": "/n", "value": 1},
        {"op": ["add"], "path": "/n", "value": 1},
        {"path": "/n"},
        "add",
        {"op": "set", "path": "/id", "value": "x"},
        {"op": "remove", "path": "/_ts"},
        {"op": "set", "path": "/_etag", "value": "x"},
        {"op": "set", "path": "/pk", "value": "x"},
        {"op": "set", "path": "/pk/below", "value": "x"},
        {"op": "set", "path": "/deep", "value": {}},
        {"op": "set", "path": "/deep/key", "value": 1},
        {"op": "move", "from": "/pk", "path": "/x"},
        {"op": "move", "from": "/n", "path": "/id"},
    ],
)
def test_what_cannot_be_done_is_refused_with_its_place(operation: Any) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        patched({"op": "set", "path": "/fine", "value": 1}, operation)
    assert refusal.value.reason.startswith("For Operation(2): ")


def test_a_sum_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(MalformedRequest):
        patched({"op": "set", "path": "/n", "value": 1.7e308}, {"op": "incr", "path": "/n", "value": 1.7e308})


def test_a_path_beside_the_partition_key_is_free() -> None:
    changed = {"id": "i", "deep": {"key": 1}}
    Patch(parse_operations([{"op": "set", "path": "/deep/other", "value": 2}], key_paths=KEY_PATHS)).apply(changed)
    assert changed["deep"] == {"key": 1, "other": 2}


@pytest.mark.parametrize(
    "operations", [None, [], {}, "x", [{"op": "remove", "path": "/n"}] * (PATCH_OPERATIONS_MAX + 1)]
)
def test_there_is_at_least_one_operation_and_at_most_ten(operations: Any) -> None:
    with pytest.raises(MalformedRequest):
        parse_operations(operations, key_paths=())


_segments = st.sampled_from(
    ["id", "pk", "n", "list", "address", "rows", "0", "1", "-", "x", "", "~0", "~1", "_ts", "é"]
)
_paths = st.lists(_segments, max_size=4).map(lambda names: "".join(f"/{name}" for name in names)) | st.text(max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_operations = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "set", "replace", "remove", "incr", "move", "?"])},
        optional={"path": _paths, "from": _paths, "value": _values},
    )
    | _values,
    max_size=12,
)


@given(_operations)
def test_any_patch_is_done_or_refused_and_leaves_the_address_alone(operations: list[Any]) -> None:
    changed = item()
    body = copy.deepcopy(operations)
    refused = False
    try:
        Patch(parse_operations(body, key_paths=KEY_PATHS)).apply(changed)
    except MalformedRequest:
        refused = True
    assert refused or (changed["id"], changed["pk"]) == ("i", "p")
    assert json.loads(json.dumps(changed)) == changed
    assert not any(isinstance(value, float) and not math.isfinite(value) for value in changed.values())


def test_a_patch_that_is_applied_again_does_the_same_again() -> None:
    patch = Patch(
        parse_operations(
            [
                {"op": "set", "path": "/box", "value": {"list": []}},
                {"op": "add", "path": "/box/list/-", "value": [1]},
                {"op": "replace", "path": "/text", "value": {"n": 1}},
                {"op": "incr", "path": "/text/n", "value": 1},
            ],
            key_paths=KEY_PATHS,
        )
    )
    for _ in range(2):
        fresh = item()
        patch.apply(fresh)
        assert (fresh["box"], fresh["text"]) == ({"list": [[1]]}, {"n": 2})
