"""A running server as the source of `asterism advise`: the container's items, key and throughput, and its capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.item_lines import BadLines
from asterism.cli.advise_sources import RequestLog
from asterism.cli.client import AdminClient, Refused
from asterism.cli.data_client import DataClient
from asterism.values.json.text import dumps_parsed

_PAGE_ITEMS: Final = 1_000


class LiveSource:
    """The container of a running server. Reading all items costs request units, which others use too."""

    def __init__(self, database: str, container: str, *, data: DataClient, admin: AdminClient) -> None:
        self._names = {"database": database, "container": container}
        self._link = f"dbs/{database}/colls/{container}"
        self._data = data
        self._admin = admin
        self.bad_items = BadLines()
        described = data.need("GET", self._link, type_="colls", link=self._link).body
        self.present: CandidateKey | None = CandidateKey.of_definition(described["partitionKey"])
        facts = admin.get("partitions", **self._names)
        throughput = facts.get("throughput") or {}
        self.ru_per_second: int | None = throughput.get("ru")
        self.is_autoscale = throughput.get("mode") == "autoscale"
        self.partitions: int | None = len(facts["partitions"])
        self._size_bytes = sum(partition.get("size_bytes") or 0 for partition in facts["partitions"])

    @property
    def total(self) -> int | None:
        return self._size_bytes or None

    def items(self, on_bytes: Callable[[int], None]) -> Iterator[tuple[Mapping[str, Any], int]]:
        headers = {"x-ms-max-item-count": str(_PAGE_ITEMS)}
        for answer in self._data.pages(f"{self._link}/docs", type_="docs", link=self._link, headers=headers):
            for item in answer.body["Documents"]:
                size = len(dumps_parsed(item))
                on_bytes(size)
                yield item, size

    def log(self) -> RequestLog:
        """Return the captured requests; none if the container has no capture."""
        try:
            return RequestLog.read(self._admin.lines("capture/records", **self._names))
        except Refused:
            return RequestLog()

    def salt(self) -> bytes | None:
        try:
            return bytes.fromhex(self._admin.get("capture/salt", **self._names)["salt"])
        except Refused:
            return None
