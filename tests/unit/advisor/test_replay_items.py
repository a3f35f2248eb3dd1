"""The items of a replay: which are loaded, and what writes make of them."""

from __future__ import annotations

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.replay_items import choose_items, padded, with_values, written_item
from asterism.values.json.text import dumps

PRESENT = CandidateKey.of_paths("/pk")


def item(item_id: str, pk: str = "a", **more: object) -> dict[str, object]:
    return {"id": item_id, "pk": pk, **more}


def chosen_ids(items: list[dict[str, object]], requests: list[CapturedRequest], *, items_max: int = 100) -> list[str]:
    return [each["id"] for each in choose_items(items, requests, present=PRESENT, items_max=items_max)]


def test_items_that_requests_name_and_queries_find_come_first() -> None:
    requests = [
        CapturedRequest(0.0, "read", item_id="3", key=("a",)),
        CapturedRequest(0.0, "query", equal={"/kind": ("x",)}),
    ]
    items = [item("1"), item("2", kind="x"), item("3"), item("4", kind="y")]
    assert chosen_ids(items, requests, items_max=3) == ["3", "2", "1"]


def test_an_item_of_another_key_with_the_same_id_is_another_item() -> None:
    requests = [CapturedRequest(0.0, "read", item_id="1", key=("b",))]
    chosen = choose_items([item("1"), item("1", "b")], requests, present=PRESENT, items_max=1)
    assert chosen == [item("1", "b")]


def test_an_item_that_the_requests_create_is_not_loaded() -> None:
    requests = [
        CapturedRequest(0.0, "create", item_id="1", key=("a",)),
        CapturedRequest(1.0, "read", item_id="1", key=("a",)),
        CapturedRequest(1.0, "upsert", item_id="2", key=("a",), status=201),
        CapturedRequest(1.0, "upsert", item_id="3", key=("a",), status=200),
    ]
    assert chosen_ids([item("1"), item("2"), item("3")], requests) == ["3"]


def test_system_properties_are_left_out() -> None:
    (chosen,) = choose_items([item("1", _ts=5, _etag="e")], [], present=PRESENT, items_max=1)
    assert chosen == item("1")


def test_a_create_has_the_size_of_the_captured_item() -> None:
    request = CapturedRequest(0.0, "create", item_id="1", values={"/pk": "a", "/a/b": 1}, size_bytes=500)
    made = written_item(request, None)
    assert made["a"] == {"b": 1}
    assert len(dumps(made)) == 500


def test_a_replacement_keeps_what_the_capture_does_not_have() -> None:
    before = item("1", tags=["x"], inner={"n": 1, "m": 2})
    request = CapturedRequest(0.0, "replace", item_id="1", values={"/inner/n": 5}, size_bytes=5000)
    assert written_item(request, before) == item("1", tags=["x"], inner={"n": 5, "m": 2})


def test_values_are_set_without_changing_the_item_before() -> None:
    before = {"a": {"b": {"c": 1}}, "s": "text"}
    assert with_values(before, {"/a/b/c": 2, "/s/t": 3}) == {"a": {"b": {"c": 2}}, "s": {"t": 3}}
    assert before == {"a": {"b": {"c": 1}}, "s": "text"}


def test_an_item_that_is_large_enough_is_not_padded() -> None:
    assert padded({"id": "1"}, 3) == {"id": "1"}
