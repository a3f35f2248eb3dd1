"""Indexing policies as users of the official client change them."""

from __future__ import annotations

import time
from typing import Any

from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey

PROGRESS = "x-ms-documentdb-collection-index-transformation-progress"
SECONDS_MAX = 60.0
POLICY: dict[str, Any] = {
    "indexingMode": "consistent",
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/pad/?"}],
    "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
    "spatialIndexes": [{"path": "/place/*", "types": ["Point"]}],
}


def percent_of(container: ContainerProxy) -> int:
    seen: list[int] = []
    container.read(populate_quota_info=True, response_hook=lambda headers, _: seen.append(int(headers[PROGRESS])))
    return seen[0]


def test_a_changed_policy_tells_its_progress_and_is_then_in_force(
    database: DatabaseProxy, container: ContainerProxy
) -> None:
    for number in range(300):
        place = {"type": "Point", "coordinates": [number % 180, 10]}
        container.create_item({"id": str(number), "pk": number % 7, "a": number % 5, "b": number, "place": place})
    replaced = database.replace_container(container, PartitionKey("/pk"), indexing_policy=POLICY)
    percents = [percent_of(replaced)]
    deadline = time.monotonic() + SECONDS_MAX
    while percents[-1] < 100 and time.monotonic() < deadline:
        percents.append(percent_of(replaced))
    assert percents == sorted(percents)
    assert percents[-1] == 100
    ordered = replaced.query_items("SELECT * FROM c ORDER BY c.a, c.b DESC", enable_cross_partition_query=True)
    found = [(item["a"], -item["b"]) for item in ordered]
    assert len(found) == 300
    assert found == sorted(found)
    near = replaced.query_items(
        "SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.place, {'type': 'Point', 'coordinates': [7, 10]}) < 1000",
        enable_cross_partition_query=True,
    )
    assert sorted(near) == ["187", "7"]
    assert "catching_up" not in replaced.read()


def test_the_least_and_the_greatest_value_over_all_partitions(container: ContainerProxy) -> None:
    for number in range(20):
        container.create_item({"id": str(number), "pk": number % 7, "n": number})
    texts = ["SELECT VALUE MIN(c.n) FROM c", "SELECT VALUE MAX(c.n) FROM c", "SELECT VALUE COUNT(c.n) FROM c"]
    found = [list(container.query_items(text, enable_cross_partition_query=True)) for text in texts]
    assert found == [[0], [19], [20]]
