"""Containers with a computed key against a model: every item is where its rule says, whatever was done before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import AsterismError, ItemExists, ItemNotFound, PartitionKeyMismatch, ReshapeRefused
from asterism.keyspaces.routing.families import ITEMS
from asterism.models.documents.batch import Operation, OperationKind
from asterism.models.documents.container import Container
from asterism.models.documents.cosmos.patch import Patch, parse_operations
from asterism.partitioning.partition_key import PartitionKey, extract
from asterism.throughput.budgets import Manual
from asterism.values.undefined import UNDEFINED
from tests.support.world import World, open_world

RULES: dict[str, dict[str, Any]] = {
    "joined": {"parts": ["/a", "/b"]},
    "hashed": {"parts": ["/a"], "suffix": {"kind": "hash", "path": "/b", "count": 3}},
    "drawn": {"parts": ["/a"], "suffix": {"kind": "random", "count": 5}},
    "rolled": {"parts": [{"path": "/at", "bucket": "day"}, "/a"], "missing": "absent"},
}
# The absent key, which clients send with a plain item.
PLAIN: PartitionKey = (UNDEFINED,)


class Step(NamedTuple):
    kind: str
    a: str
    number: int
    # How the request names the key.
    naming: str


steps = st.builds(
    Step,
    st.sampled_from(["create", "upsert", "replace", "patch", "delete", "batch", "raise", "split"]),
    st.sampled_from(["p", "q"]),
    st.integers(0, 4),
    st.sampled_from(["plain", "sources", "fragment", "none"]),
)


def item_of(step: Step, n: int) -> dict[str, Any]:
    # One value of /b for each id, so that a model can tell items apart by their id and /a.
    return {"id": f"i{step.number}", "a": step.a, "b": step.number, "at": f"2026-01-0{step.number + 1}", "n": n}


class Model:
    """Expectation of a client: the items that it wrote, by the value of /a and the id."""

    def __init__(self, world: World, container: Container) -> None:
        self._world = world
        self._container = container
        self._n = 0
        self.items: dict[tuple[str, str], int] = {}

    async def do(self, step: Step) -> None:
        match step.kind:
            case "raise":
                await self._raise()
            case "split":
                await self._split()
            case _:
                await self._write(step)

    async def _write(self, step: Step) -> None:
        self._n += 1
        item, container = item_of(step, self._n), self._container
        place, item_id = (step.a, item["id"]), item["id"].encode()
        exists = place in self.items
        named = self._named(item, step.naming)
        # Patches and deletes name a key.
        located = self._named(item, "sources") if named in (None, PLAIN) else named
        assert located is not None
        acts: dict[str, tuple[Callable[[], Awaitable[Any]], bool]] = {
            "create": (lambda: container.create_item(item, named), True),
            "upsert": (lambda: container.upsert_item(item, named), True),
            "replace": (lambda: container.replace_item(item_id, item, named), True),
            "patch": (lambda: container.patch_item(item_id, _set("n", self._n), located), True),
            "delete": (lambda: container.delete_item(item_id, located), False),
            "batch": (lambda: container.run_batch(located, [Operation(OperationKind.UPSERT, item_id, item)]), True),
        }
        act, stays = acts[step.kind]
        refusal: type[AsterismError] | None = ItemExists if step.kind == "create" and exists else None
        if step.kind in ("replace", "patch", "delete") and not exists:
            refusal = ItemNotFound
        if refusal is not None:
            with pytest.raises(refusal):
                await act()
            return
        await act()
        self.items.pop(place, None)
        if stays:
            self.items[place] = self._n

    def _named(self, item: dict[str, Any], naming: str) -> PartitionKey | None:
        computed = self._container.computed_key
        assert computed is not None
        (rule,) = computed.rules.values()
        sources = [part.value_in(item) for part in rule.source_parts]
        named: dict[str, Any] = {
            "plain": PLAIN,
            "none": None,
            "fragment": ({part.path[1:]: value for part, value in zip(rule.source_parts, sources, strict=True)},),
            "sources": tuple(sources),
        }
        chosen: PartitionKey | None = named[naming]
        return chosen

    async def _raise(self) -> None:
        record = self._container.keyspace.record
        key = record.settings["partitionKey"]
        rule = key["synthetic"]["/pk"]
        # The model's history is longer than that of counts may be.
        if "suffix" not in rule or rule["suffix"]["count"] > 8:
            return
        suffix = {**rule["suffix"], "count": rule["suffix"]["count"] + 2}
        changed = {**key, "synthetic": {"/pk": {**rule, "suffix": suffix}}}
        body = {**record.settings, "partitionKey": changed}
        self._container = await self._world.store.replace_container(self._container, body)

    async def _split(self) -> None:
        keyspace, reshaper = self._container.keyspace, self._world.reshaper
        # A single logical partition cannot be divided.
        with suppress(ReshapeRefused):
            await reshaper.finished(await reshaper.split(keyspace, keyspace.record.map.ranges[0].id))

    async def check(self) -> None:
        container = self._container
        computed = container.computed_key
        assert computed is not None
        stored = await self._stored()
        # D17
        for key, item in stored:
            assert computed.accepts({name: item[name] for name in item if name != "pk"}, key)
            assert item.get("pk", UNDEFINED) == key[0]
        assert {(item["a"], item["id"]): item["n"] for _, item in stored} == self.items
        assert len(stored) == len(self.items)
        for (a, item_id), n in self.items.items():
            item = item_of(Step("", a, int(item_id[1:]), ""), n)
            for naming in ("sources", "fragment"):
                named = self._named(item, naming)
                assert named is not None
                found = await container.read_item(item_id.encode(), named)
                assert container.codec.decode(found.body)["n"] == n
        await self._world.check_statistics(container)

    async def _stored(self) -> list[tuple[PartitionKey, dict[str, Any]]]:
        """Return all items with the keys under which they are stored."""
        container, found = self._container, []
        for partition in container.keyspace.record.map.ranges:
            for key, stored in await self._world.everything(partition.partition, ITEMS):
                item: dict[str, Any] = container.codec.decode(stored[35:])
                own = extract(container.record.definition, item)
                assert key[1:].startswith(container.planner.point(own))
                found.append((own, item))
        return found


def _set(name: str, value: object) -> Patch:
    return Patch(parse_operations([{"op": "set", "path": f"/{name}", "value": value}], key_paths=()))


@pytest.mark.parametrize("rule", RULES)
def test_every_item_is_where_its_rule_says_whatever_was_done_before(rule: str) -> None:
    @settings(max_examples=30, deadline=None)
    @given(st.lists(steps, max_size=12))
    def check(done: Sequence[Step]) -> None:
        async def scenario() -> None:
            async with asyncio.timeout(120), open_world(None) as world:
                container = await _container(world, rule)
                model = Model(world, container)
                for step in done:
                    await model.do(step)
                await model.check()

        asyncio.run(scenario())

    check()


@pytest.mark.parametrize("rule", ["hashed", "drawn"])
async def test_writers_of_one_new_item_make_one_item(rule: str) -> None:
    async with open_world(None) as world:
        container = await _container(world, rule)
        item = item_of(Step("", "p", 1, ""), 0)
        answers = await asyncio.gather(*(container.upsert_item({**item, "n": n}, None) for n in range(10)))
        assert sum(answer.created for answer in answers) == 1
        creates = [container.create_item({**item, "id": "new"}, None) for _ in range(10)]
        outcomes = await asyncio.gather(*creates, return_exceptions=True)
        assert sum(isinstance(outcome, ItemExists) for outcome in outcomes) == 9


async def test_no_way_of_writing_moves_an_item_away_from_its_key() -> None:
    async with open_world(None) as world:
        container = await _container(world, "joined")
        item = {"id": "1", "a": "p", "b": 1}
        await container.create_item(item, None)
        with pytest.raises(PartitionKeyMismatch):
            await container.upsert_item({**item, "pk": "q-1"}, None)
        with pytest.raises(PartitionKeyMismatch):
            await container.replace_item(b"1", {**item, "b": 2}, ("p", 1))
        with pytest.raises(PartitionKeyMismatch):
            await container.run_batch(("p", 1), [Operation(OperationKind.CREATE, b"2", {**item, "id": "2", "a": "q"})])
        with pytest.raises(PartitionKeyMismatch):
            await container.patch_item(b"1", _set("a", "q"), ("p", 1))
        found = await container.read_item(b"1", ("p", 1))
        assert container.codec.decode(found.body)["pk"] == "p-1"


async def _container(world: World, rule: str) -> Container:
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2, "synthetic": {"/pk": RULES[rule]}}
    return await world.container(throughput=Manual(12_000), partitionKey=key)
