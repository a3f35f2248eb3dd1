"""The data that shapes of queries are measured on."""

from __future__ import annotations

from collections import Counter

from benchmarks.query_shapes import BATCH_ITEMS, ITEMS, KIND_ITEMS, indexing, make_item, shapes

DATA = [make_item(number) for number in range(ITEMS)]


def test_a_kind_has_as_many_items_as_a_full_read_expects() -> None:
    assert Counter(item["kind"] for item in DATA)["k03"] == KIND_ITEMS


def test_every_batch_has_one_partition_key() -> None:
    assert set(Counter(item["pk"] for item in DATA).values()) == {BATCH_ITEMS}


def test_shapes_differ_and_each_has_something_to_find() -> None:
    found = shapes(DATA)
    assert len({shape.text for shape in found}) == len(found)
    assert all(shape.expected for shape in found)


def test_a_composite_index_is_written_as_an_order_is() -> None:
    (index,) = indexing("city, price desc")["indexingPolicy"]["compositeIndexes"]
    assert index == [{"path": "/city", "order": "ascending"}, {"path": "/price", "order": "descending"}]
