"""Workloads for the choice of a partition key: items and requests, the same at every run. For each another key is best.

Requests name the key that the container has at present. Each workload has a few keys that people would consider, some
of them bad, and the candidates of the advisor come on top.
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.captured_request import CapturedRequest
from asterism.partitioning.synthetic_key import KeyRule

Item = dict[str, Any]

# Shortly before midnight, so that the date changes in the middle.
STARTED = datetime(2026, 3, 1, 23, 59, 50, tzinfo=UTC)
ITEM_BYTES = 700
CAPTURE_SECONDS = 20.0


@dataclass(frozen=True)
class KeyWorkload:
    name: str
    present: CandidateKey
    items: Sequence[Item]
    requests: Sequence[CapturedRequest]
    # Keys to measure, good and bad ones; the present one is among them.
    keys: Sequence[CandidateKey]


class Zipf:
    """Numbers from 0 on, the k-th with a probability in proportion to 1 / k ** theta."""

    def __init__(self, count: int, theta: float) -> None:
        self._sums = list(itertools.accumulate((rank + 1) ** -theta for rank in range(count)))

    def draw(self, chance: random.Random) -> int:
        return bisect_left(self._sums, chance.random() * self._sums[-1])


def synthetic(*parts: object, **options: object) -> CandidateKey:
    return CandidateKey.of_rule(KeyRule.parse({"parts": list(parts), **options}))


def hash_suffix(path: str, *, of: str, count: int) -> CandidateKey:
    return synthetic(path, suffix={"kind": "hash", "path": of, "count": count})


def random_suffix(path: str, *, count: int) -> CandidateKey:
    return synthetic(path, suffix={"kind": "random", "count": count})


def _filled(item: Item, chance: random.Random, *, size_bytes: int = ITEM_BYTES) -> Item:
    """Return the item with a text without order that fills it up; 100 bytes are other properties."""
    return {**item, "text": chance.randbytes((size_bytes - 100) // 2).hex()}


def _times(chance: random.Random, count: int) -> list[float]:
    return sorted(STARTED.timestamp() + chance.random() * CAPTURE_SECONDS for _ in range(count))


def _scalars(item: Item) -> dict[str, Any]:
    return {f"/{name}": value for name, value in item.items() if not isinstance(value, dict | list)}


class _Log:
    """The requests of a workload as they come, about items that are known by their ids."""

    def __init__(self, present: CandidateKey, items: Sequence[Item]) -> None:
        self._present = present
        self._present_items = {item["id"]: item for item in items}
        self.requests: list[CapturedRequest] = []

    def read(self, at: float, item_id: str) -> None:
        item = self._present_items[item_id]
        self._add(at, "read", item, status=200)

    def write(self, at: float, operation: str, item: Item, *, batch: str | None = None) -> None:
        status = 200 if item["id"] in self._present_items else 201
        self._present_items[item["id"]] = item
        self._add(at, operation, item, values=_scalars(item), status=status, batch=batch)

    def patch(self, at: float, item_id: str, values: dict[str, Any], *, batch: str | None = None) -> None:
        item = self._present_items[item_id]
        item |= {path.removeprefix("/"): value for path, value in values.items()}
        self._add(at, "patch", item, values=values, status=200, batch=batch)

    def delete(self, at: float, item_id: str) -> None:
        self._add(at, "delete", self._present_items.pop(item_id), status=204)

    def query(
        self,
        at: float,
        equal: dict[str, Any],
        *,
        between: dict[str, tuple[Any, Any]] | None = None,
        limit: int | None = None,
    ) -> None:
        """Add a query for items with these values; it finds as many as there are now, at most `limit`."""
        found = sum(_matches(item, equal, between or {}) for item in self._present_items.values())
        key = self._present.routes_of({path: [value] for path, value in equal.items()})
        self.requests.append(
            CapturedRequest(
                at,
                "query",
                key=key[0] if key is not None and len(key) == 1 else None,
                equal={path: (value,) for path, value in equal.items()},
                between=between or {},
                shape="SELECT * FROM c" if limit is None else "SELECT TOP @1 * FROM c",
                results=found if limit is None else min(found, limit),
            )
        )

    def _add(self, at: float, operation: str, item: Item, **more: Any) -> None:
        key = self._present.key_of(item)
        self.requests.append(CapturedRequest(at, operation, item_id=item["id"], key=key, size_bytes=ITEM_BYTES, **more))


def _matches(item: Item, equal: dict[str, Any], between: dict[str, tuple[Any, Any]]) -> bool:
    return all(item.get(path[1:]) == value for path, value in equal.items()) and all(
        low <= item.get(path[1:], "") <= high for path, (low, high) in between.items()
    )


# --- the workloads ----------------------------------------------------------------------------------------------------


def ycsb(theta: float, *, items: int = 1500, requests: int = 1000) -> KeyWorkload:
    """Reads and updates of single items by a Zipfian choice, and a few queries of a group."""
    chance = random.Random(f"ycsb {theta}")
    present = CandidateKey.of_paths("/region")
    stored = [
        _filled({"id": f"user{n:05d}", "region": f"r{n % 5}", "group": f"g{n % 150:03d}", "active": n % 3 > 0}, chance)
        for n in range(items)
    ]
    chance.shuffle(stored)
    popular, log = Zipf(items, theta), _Log(present, stored)
    for at in _times(chance, requests):
        item = stored[popular.draw(chance)]
        share = chance.random()
        if share < 0.5:
            log.read(at, item["id"])
        elif share < 0.95:
            log.write(at, "replace", _filled({**item, "active": not item["active"]}, chance))
        else:
            log.query(at, {"/group": item["group"]})
    paths = ("/region", "/id", "/group", "/active")
    keys = [*map(CandidateKey.of_paths, paths), CandidateKey.of_paths("/region", "/id")]
    return KeyWorkload(f"YCSB, theta {theta:g}", present, stored, log.requests, keys)


def orders_by_warehouse(*, warehouses: int = 24, requests: int = 700) -> KeyWorkload:
    """Orders with lines in one transaction, payments, the status of a customer's order, the stock of a warehouse."""
    chance = random.Random("orders")
    present = CandidateKey.of_paths("/district")
    stored: list[Item] = []
    for warehouse, district, number in itertools.product(range(warehouses), range(5), range(8)):
        name = f"w{warehouse:02d}-d{district}-c{number}"
        placed = {"warehouse": f"w{warehouse:02d}", "district": f"d{district}", "customer": name}
        stored.append(_filled({"id": name, "kind": "customer", **placed, "balance": 0}, chance))
    log, numbers = _Log(present, stored), itertools.count()
    for at in _times(chance, requests):
        customer = chance.choice(stored)
        share = chance.random()
        where = {name: customer[name] for name in ("warehouse", "district", "customer")}
        if share < 0.4:
            number = next(numbers)
            for line in range(3):
                kind = "order" if line == 0 else "line"
                entry = _filled({"id": f"o{number:05d}-{line}", "kind": kind, **where}, chance)
                log.write(at, "create", entry, batch=f"order {number}")
        elif share < 0.7:
            log.patch(at, customer["id"], {"/balance": number_of(chance)})
        elif share < 0.9:
            log.query(at, {"/warehouse": where["warehouse"], "/customer": where["customer"]})
        else:
            log.query(at, {"/warehouse": where["warehouse"], "/kind": "customer"})
    paths = ("/district", "/warehouse", "/customer", "/id", "/kind")
    keys = [*map(CandidateKey.of_paths, paths), CandidateKey.of_paths("/warehouse", "/customer")]
    return KeyWorkload("orders by warehouse", present, stored, log.requests, keys)


def number_of(chance: random.Random) -> int:
    return chance.randrange(10_000)


def tenants(*, requests: int = 1000) -> KeyWorkload:
    """Documents of the users of sixty tenants, one of which has 30 % of the items and of the requests."""
    chance = random.Random("tenants")
    present = CandidateKey.of_paths("/tenant")
    stored: list[Item] = []
    for number in range(1600):
        tenant = "t00" if chance.random() < 0.3 else f"t{chance.randrange(1, 60):02d}"
        user = f"{tenant}-u{chance.randrange(40):02d}"
        owned = {"tenant": tenant, "user": user, "plan": ("free", "team", "large")[number % 3]}
        stored.append(_filled({"id": f"doc{number:05d}", **owned, "version": 0}, chance))
    log, numbers = _Log(present, stored), itertools.count()
    for at in _times(chance, requests):
        item = chance.choice(stored)
        share = chance.random()
        if share < 0.35:
            log.read(at, item["id"])
        elif share < 0.65:
            log.query(at, {"/tenant": item["tenant"], "/user": item["user"]})
        elif share < 0.85:
            made = {"id": f"new{next(numbers):05d}", **{name: item[name] for name in ("tenant", "user", "plan")}}
            log.write(at, "create", _filled({**made, "version": 0}, chance))
        else:
            log.patch(at, item["id"], {"/version": number_of(chance)})
    paths = ("/tenant", "/user", "/id", "/plan")
    keys = [
        *map(CandidateKey.of_paths, paths),
        CandidateKey.of_paths("/tenant", "/user"),
        hash_suffix("/tenant", of="/user", count=10),
    ]
    return KeyWorkload("tenants, one of 30 %", present, stored, log.requests, keys)


def telemetry(*, devices: int = 120, requests: int = 1000) -> KeyWorkload:
    """Readings with the time of their writing, over the end of a day, and queries of a device for some hours back."""
    chance = random.Random("telemetry")
    present = CandidateKey.of_paths("/date")
    days = 3

    def reading(number: int, moment: datetime, device: int) -> Item:
        made = {"id": f"r{number:06d}", "deviceId": f"dev{device:03d}", "site": f"s{device % 4}"}
        return _filled({**made, "at": _iso(moment), "date": _iso(moment)[:10], "value": number_of(chance)}, chance)

    before = STARTED - timedelta(days=days)
    stored = [
        reading(number, before + timedelta(days=days) * (number / 1200), number % devices) for number in range(1200)
    ]
    log, numbers = _Log(present, stored), itertools.count(1200)
    for at in _times(chance, requests):
        moment = datetime.fromtimestamp(at, UTC)
        device = chance.randrange(devices)
        share = chance.random()
        if share < 0.7:
            log.write(at, "create", reading(next(numbers), moment, device))
        elif share < 0.95:
            bounds = (_iso(moment - timedelta(hours=20)), _iso(moment))
            log.query(at, {"/deviceId": f"dev{device:03d}"}, between={"/at": bounds})
        else:
            log.query(
                at, {"/site": f"s{device % 4}"}, between={"/at": (_iso(moment - timedelta(hours=1)), _iso(moment))}
            )
    paths = ("/date", "/deviceId", "/id", "/site")
    keys = [
        *map(CandidateKey.of_paths, paths),
        synthetic("/deviceId", {"path": "/at", "bucket": "day"}),
        hash_suffix("/date", of="/deviceId", count=20),
    ]
    return KeyWorkload("telemetry by date", present, stored, log.requests, keys)


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def carts(*, customers: int = 700, requests: int = 1000) -> KeyWorkload:
    """Carts that are read and written as a whole under their own id, and a list of a customer's carts now and then."""
    chance = random.Random("carts")
    present = CandidateKey.of_paths("/country")
    stored = []
    for number in range(1400):
        owner = number % customers
        country = "de" if owner % 10 < 6 else ("fr", "at", "ch", "nl")[owner % 4]
        open_ = {"customer": f"c{owner:04d}", "country": country, "status": "open", "total": 0}
        stored.append(_filled({"id": f"cart{number:05d}", **open_}, chance))
    log, numbers = _Log(present, stored), itertools.count(1400)
    popular = Zipf(len(stored), 0.7)
    living = list(stored)
    for at in _times(chance, requests):
        place = popular.draw(chance) % len(living)
        cart = living[place]
        share = chance.random()
        if share < 0.4:
            log.read(at, cart["id"])
        elif share < 0.8:
            living[place] = _filled({**cart, "total": number_of(chance)}, chance)
            log.write(at, "upsert", living[place])
        elif share < 0.88:
            log.query(at, {"/customer": cart["customer"]})
        elif share < 0.94:
            made = {"id": f"cart{next(numbers):05d}", "total": 0}
            owned = {name: cart[name] for name in ("customer", "country", "status")}
            living.append(_filled({**made, **owned}, chance))
            log.write(at, "upsert", living[-1])
        else:
            log.delete(at, living.pop(place)["id"])
    paths = ("/country", "/id", "/customer", "/status")
    keys = [*map(CandidateKey.of_paths, paths), CandidateKey.of_paths("/country", "/customer")]
    return KeyWorkload("shopping carts", present, stored, log.requests, keys)


def graph_with_super_node(*, vertices: int = 300, requests: int = 1000) -> KeyWorkload:
    """Edges of a graph, where every fifth leaves one node: the edges from a node, one edge, the nodes before one."""
    chance = random.Random("graph")
    present = CandidateKey.of_paths("/label")

    def edge(number: int) -> Item:
        source = 0 if chance.random() < 0.2 else chance.randrange(1, vertices)
        ends = {"source": f"v{source:04d}", "target": f"v{chance.randrange(vertices):04d}"}
        return _filled({"id": f"e{number:05d}", "label": ("knows", "likes", "owns")[number % 3], **ends}, chance)

    stored = [edge(number) for number in range(1500)]
    log, numbers = _Log(present, stored), itertools.count(1500)
    for at in _times(chance, requests):
        item = chance.choice(stored)
        share = chance.random()
        if share < 0.35:
            log.query(at, {"/source": item["source"], "/label": item["label"]}, limit=20)
        elif share < 0.5:
            log.query(at, {"/target": item["target"]}, limit=20)
        elif share < 0.6:
            log.query(at, {"/source": item["source"], "/target": item["target"]})
        else:
            log.write(at, "create", edge(next(numbers)))
    paths = ("/label", "/source", "/target", "/id")
    keys = [
        *map(CandidateKey.of_paths, paths),
        CandidateKey.of_paths("/source", "/target"),
        hash_suffix("/source", of="/target", count=10),
    ]
    return KeyWorkload("graph with a super-node", present, stored, log.requests, keys)


WORKLOADS: Sequence[Callable[[], KeyWorkload]] = (
    lambda: ycsb(0.5),
    lambda: ycsb(1.2),
    orders_by_warehouse,
    tenants,
    telemetry,
    carts,
    graph_with_super_node,
)


def all_workloads() -> Iterator[KeyWorkload]:
    for make in WORKLOADS:
        yield make()
