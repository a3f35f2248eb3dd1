"""Every kind of write leaves each edge with its entry at its sink, in one partition and over several (D11)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from asterism.clock import Clock
from asterism.errors import Forbidden, ItemExists, PreconditionFailed, RequestRateTooLarge
from asterism.models.documents.batch import Operation, OperationKind
from asterism.models.documents.container import Container
from asterism.models.documents.cosmos.patch import Patch, parse_operations
from asterism.models.documents.incoming.reads import entries_for
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.transaction import Conditions
from asterism.throughput.budgets import Manual
from tests.support.incoming_edges import edge, false_entries
from tests.support.world import World, open_world

# One, and four, in which the keys of the tests lie in different ones.
THROUGHPUTS = [400, 40_000]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture(params=THROUGHPUTS)
async def container(world: World, request: pytest.FixtureRequest) -> Container:
    return await world.container(throughput=Manual(request.param), incomingEdges=True)


def reference(container: Container, pk: str, edge_id: str) -> bytes:
    return ItemKey.at(container.planner.point((pk,)), edge_id.encode()).reference


async def incoming(
    world: World, container: Container, sink: str, sink_pk: str, labels: list[bytes] | None = None
) -> list[bytes]:
    point = container.planner.point((sink_pk,))
    found = await entries_for(container, [(point, sink.encode())], labels, reads=world.router)
    assert found is not None
    return found[0]


def patched(*operations: dict[str, Any]) -> Patch:
    return Patch(parse_operations(list(operations), key_paths=[("pk",)]))


# --- single writes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sink_pk", ["p", *(f"q{number}" for number in range(4))])
async def test_an_edge_is_found_by_its_sink_until_it_is_deleted(
    world: World, container: Container, sink_pk: str
) -> None:
    await container.create_item(edge(sink_pk=sink_pk), None)
    assert await incoming(world, container, "v", sink_pk) == [reference(container, "p", "e")]
    assert await incoming(world, container, "w", sink_pk) == []
    assert await false_entries(world, container) == 0
    await container.delete_item(b"e", ("p",))
    assert await incoming(world, container, "v", sink_pk) == []
    assert await false_entries(world, container) == 0


async def test_an_edge_that_is_turned_is_found_by_its_new_sink_alone(world: World, container: Container) -> None:
    await container.upsert_item(edge(sink="a", sink_pk="q0"), None)
    for number in range(1, 6):
        await container.upsert_item(edge(sink=f"s{number}", sink_pk=f"q{number}"), None)
        assert await incoming(world, container, f"s{number}", f"q{number}") == [reference(container, "p", "e")]
        assert await false_entries(world, container) == 0
    await container.replace_item(b"e", edge(sink="a", sink_pk="q0", label="likes"), None)
    assert await incoming(world, container, "a", "q0", [b"likes"]) == [reference(container, "p", "e")]
    assert await incoming(world, container, "a", "q0", [b"knows"]) == []
    await container.patch_item(b"e", patched({"op": "set", "path": "/_sink", "value": "b"}), ("p",))
    assert await incoming(world, container, "b", "q0") == [reference(container, "p", "e")]
    await container.patch_item(b"e", patched({"op": "set", "path": "/_isEdge", "value": False}), ("p",))
    assert await incoming(world, container, "b", "q0") == []
    assert await false_entries(world, container) == 0


async def test_a_renamed_edge_and_a_new_edge_under_an_old_id_have_their_own_entries(
    world: World, container: Container
) -> None:
    await container.create_item(edge(), None)
    await container.replace_item(b"e", edge("renamed"), None)
    assert await incoming(world, container, "v", "q") == [reference(container, "p", "renamed")]
    await container.create_item(edge(), None)
    assert await incoming(world, container, "v", "q") == [
        reference(container, "p", "renamed"),
        reference(container, "p", "e"),
    ]
    assert await false_entries(world, container) == 0


async def test_a_change_that_keeps_the_sink_writes_no_entry(world: World, container: Container) -> None:
    await container.create_item(edge(), None)
    commits = world.engine.commits
    await container.patch_item(b"e", patched({"op": "set", "path": "/since", "value": 2017}), ("p",))
    assert world.engine.commits == commits + 1
    assert await false_entries(world, container) == 0


async def test_edges_of_equal_ids_in_different_partitions_are_both_found(world: World, container: Container) -> None:
    for pk in ("p0", "p1", "p2"):
        await container.create_item(edge(pk=pk), None)
    assert await incoming(world, container, "v", "q") == [
        reference(container, f"p{number}", "e") for number in range(3)
    ]


async def test_many_sinks_are_answered_in_their_order(world: World, container: Container) -> None:
    for number in range(40):
        await container.create_item(edge(f"e{number}", sink=f"s{number % 5}", sink_pk=f"q{number % 5}"), None)
    await container.create_item(edge("liking", sink="s1", sink_pk="q1", label="likes"), None)
    sinks = [(container.planner.point((f"q{number}",)), f"s{number}".encode()) for number in (4, 1, 0)]
    found = await entries_for(container, sinks, reads=world.router)
    assert found is not None
    assert [len(references) for references in found] == [8, 9, 8]
    found = await entries_for(container, sinks, [b"likes", b"missing", b"likes"], reads=world.router)
    assert found == [[], [reference(container, "p", "liking")], []]
    assert await entries_for(container, [], reads=world.router) == []


# --- units of several operations ------------------------------------------------------------------------------------


async def test_a_batch_writes_the_entries_of_all_its_edges(world: World, container: Container) -> None:
    created = [edge(f"e{number}", sink=f"s{number}", sink_pk=f"q{number}") for number in range(20)]
    creates = [Operation(OperationKind.CREATE, document["id"].encode(), document) for document in created]
    assert not (await container.run_batch(("p",), creates)).failed
    assert await false_entries(world, container) == 0
    assert await incoming(world, container, "s7", "q7") == [reference(container, "p", "e7")]
    mixed = [
        Operation(OperationKind.DELETE, b"e0", {}),
        Operation(OperationKind.UPSERT, b"e1", edge("e1", sink="s7", sink_pk="q7")),
        Operation(OperationKind.CREATE, b"new", edge("new", sink="s0", sink_pk="q0")),
        Operation(OperationKind.DELETE, b"new", {}),
        Operation(OperationKind.PATCH, b"e2", {}, patched({"op": "set", "path": "/n", "value": 1})),
    ]
    assert not (await container.run_batch(("p",), mixed)).failed
    assert await incoming(world, container, "s7", "q7") == [
        reference(container, "p", "e1"),
        reference(container, "p", "e7"),
    ]
    assert await false_entries(world, container) == 0


async def test_a_unit_on_a_snapshot_writes_the_entries_of_its_edges(world: World, container: Container) -> None:
    await container.create_item(edge("old"), None)
    async with container.snapshot_transaction(("p",)) as (work, _):
        for number in range(5):
            document = edge(f"e{number}", sink_pk=f"q{number}")
            await work.create(work.key_of(document), document)
        await work.delete(work.item_key(b"old"))
        await container.commit(work)
    assert await incoming(world, container, "v", "q3") == [reference(container, "p", "e3")]
    assert await false_entries(world, container) == 0


# --- refusals -------------------------------------------------------------------------------------------------------


async def test_a_refused_write_leaves_no_entry(world: World, container: Container) -> None:
    await container.create_item(edge(), None)
    with pytest.raises(ItemExists):
        await container.create_item(edge(sink_pk="elsewhere"), None)
    with pytest.raises(PreconditionFailed):
        await container.replace_item(b"e", edge(sink_pk="elsewhere"), None, conditions=Conditions(if_match='"another"'))
    again = [Operation(OperationKind.CREATE, b"n", edge("n")), Operation(OperationKind.CREATE, b"e", edge())]
    assert (await container.run_batch(("p",), again)).failed
    await world.catalog.refuse_writes(container.keyspace, "Not now.")
    with pytest.raises(Forbidden):
        await container.create_item(edge("new", sink_pk="elsewhere"), None)
    assert await false_entries(world, container) == 0


async def test_a_throttled_write_leaves_no_entry(tmp_path: Path) -> None:
    async with open_world(tmp_path, enforce=True) as world:
        container = await world.container(throughput=Manual(40_000), incomingEdges=True)
        documents = [edge(f"e{number}", sink_pk=f"q{number % 9}", pad="x" * 200_000) for number in range(400)]
        creates = (container.create_item(document, None) for document in documents)
        outcomes = await asyncio.gather(*creates, return_exceptions=True)
        assert any(isinstance(outcome, RequestRateTooLarge) for outcome in outcomes)
        assert await false_entries(world, container) == 0


# --- removals behind requests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("throughput", THROUGHPUTS)
async def test_expired_edges_go_with_their_entries(tmp_path: Path, throughput: int) -> None:
    now = [1_700_000_000.0]
    clock = Clock(wall_seconds=lambda: now[0], monotonic_seconds=time.monotonic)
    async with open_world(tmp_path, clock=clock) as world:
        container = await world.container(throughput=Manual(throughput), defaultTtl=-1, incomingEdges=True)
        for number in range(40):
            ttl = {"ttl": 10} if number % 2 else {}
            await container.create_item(edge(f"e{number}", pk=f"p{number % 7}", sink_pk=f"q{number % 5}", **ttl), None)
        now[0] += 60
        # An expired edge may be there still when another takes its id.
        await container.create_item(edge("e1", pk="p1", sink_pk="q4"), None)
        await world.store.housekeeper.expiry.sweep(container)
        assert await false_entries(world, container) == 0
        found = [await incoming(world, container, "v", f"q{number}") for number in range(5)]
        assert sum(map(len, found)) == 21


async def test_a_deletion_by_key_takes_the_entries_of_its_edges(world: World, container: Container) -> None:
    for number in range(40):
        await container.create_item(edge(f"e{number}", pk=f"p{number % 2}", sink_pk=f"q{number % 5}"), None)
    await world.store.housekeeper.delete_partition_key(container, ("p0",))
    while world.store.housekeeper.tasks:
        await asyncio.sleep(0.005)
    assert await false_entries(world, container) == 0
    found = [await incoming(world, container, "v", f"q{number}") for number in range(5)]
    assert sum(map(len, found)) == 20
    await world.check_statistics(container)


# --- the settings of others -----------------------------------------------------------------------------------------


async def test_a_container_without_the_setting_has_no_entries_and_says_so(world: World) -> None:
    container = await world.container()
    await container.create_item(edge(), None)
    point = container.planner.point(("q",))
    assert await entries_for(container, [(point, b"v")], reads=world.router) is None
    assert not container.has_all_incoming_edges
