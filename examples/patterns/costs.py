"""The cost of requests: request units, and the physical partitions that a query reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from azure.cosmos import ContainerProxy


@dataclass
class Answer:
    """The results of a query over all its pages."""

    results: list[Any] = field(default_factory=list)
    partitions: set[str] = field(default_factory=set)
    charge: float = 0.0

    def __str__(self) -> str:
        return f"{len(self.results)} results, {len(self.partitions)} partition(s) read, {self.charge:.2f} RU"


def ask(container: ContainerProxy, query: str, *, partition_key: Any = None, **parameters: Any) -> Answer:
    """Run a query with `@name` for each of the parameters; without a partition key it may ask all partitions."""
    answer = Answer()

    def count_page(headers: Mapping[str, Any], _page: object) -> None:
        answer.charge += float(headers["x-ms-request-charge"])
        # The server sends it because the client asks for it in `connection.connect`.
        answer.partitions.update(json.loads(headers["x-asterism-explanation"])["partitions"])

    scope = {"enable_cross_partition_query": True} if partition_key is None else {"partition_key": partition_key}
    named = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
    answer.results = list(container.query_items(query, parameters=named, response_hook=count_page, **scope))
    return answer


def charge_of(reply: Any) -> float:
    """Return the request units of a read, write or batch from its reply."""
    return float(reply.get_response_headers()["x-ms-request-charge"])
