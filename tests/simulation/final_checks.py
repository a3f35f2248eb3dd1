"""The checks of a simulation at rest: no work is left, and the data agrees with the replies to clients."""

from __future__ import annotations

from functools import partial

from asterism.keyspaces.catalog.nodes import NODE, WANTED_MOVE, NodeRecord
from asterism.keyspaces.catalog.store import CATALOG_PARTITION, GARBAGE, JOB
from asterism.keyspaces.catalog.store import KEYSPACE as KEYSPACE_PREFIX
from asterism.partitioning.placement import NodeState
from asterism.storage.nodes import CATALOG_NUMBERS_END
from asterism.values.identifiers import NodeNumber, partition_on, sequence_of
from tests.simulation.clients import find_keyspace
from tests.simulation.gateway import Gateway
from tests.simulation.history import History
from tests.simulation.inspector import Inspector, all_entries
from tests.simulation.ledger import Item, check_partition, log_of
from tests.simulation.network import Node

_WORK = {JOB: "a job", GARBAGE: "garbage", WANTED_MOVE: "a wanted move"}


def remaining_work(gateways: list[Gateway], nodes: dict[NodeNumber, Node]) -> str:
    """Return the work that is still to be done; empty if there is nothing."""
    leaders = [gateway for gateway in gateways if gateway.catalog.leads]
    if len(leaders) != 1:
        return f"{len(leaders)} gateways lead"
    if leaders[0].reshaper.must_grow(find_keyspace(leaders[0])):
        return "the keyspace has fewer partitions than its throughput needs"
    entries = _catalog_entries(nodes)
    for prefix, work in _WORK.items():
        if any(key.startswith(prefix) for key in entries):
            return f"{work} is left"
    records = [NodeRecord.from_bytes(value) for key, value in entries.items() if key.startswith(NODE)]
    return "a node is being drained" if any(record.state is NodeState.DRAINING for record in records) else ""


def _catalog_entries(nodes: dict[NodeNumber, Node]) -> dict[bytes, bytes]:
    """Return the catalog, from the node that has it now."""
    for node in nodes.values():
        found = node.store.partitions.get(CATALOG_PARTITION)
        if found is not None and not found.fence.sealed:
            return all_entries(found)
    return {}


def check_data(gateways: list[Gateway], inspector: Inspector, history: History, items: list[Item]) -> None:
    """Check that every partition is sound, the log agrees with the replies to clients, and all gateways use one map."""
    current = inspector.maps[KEYSPACE_PREFIX + find_keyspace(gateways[0]).record.rid]
    by_reference = {item.reference: item for item in items}
    log = []
    for each in current.ranges:
        entries = inspector.entries_of(each.partition)
        problems = check_partition(entries, each.range, by_reference)
        assert not problems, f"partition {each.partition}: {problems[0]}"
        log += log_of(entries)
    problems = history.check(log)
    assert not problems, problems[0]
    for gateway in gateways:
        known = find_keyspace(gateway).record.map
        assert known == current, f"{gateway} uses the map of version {known.version}, not {current.version}"


async def check_reads(gateways: list[Gateway], inspector: Inspector, items: list[Item]) -> None:
    """Check that every gateway finds every item, as it is stored."""
    for gateway in gateways:
        keyspace = find_keyspace(gateway)
        for item in items:
            stored = inspector.entries_of(keyspace.record.map.find(item.point).partition).get(item.key)
            _, _, (found,) = await gateway.call(partial(gateway.router.read, keyspace, item.point, [item.key]))
            assert found == stored, f"{gateway} does not find item {item.number} as it is stored"


def check_orphans(inspector: Inspector, nodes: dict[NodeNumber, Node]) -> None:
    """Check that no partition is left that is on no map; a new leader removes such."""
    known = {each.partition for current in inspector.maps.values() for each in current.ranges}
    for number, node in nodes.items():
        kept = {partition_on(number, sequence) for sequence in node.store.partitions}
        orphans = {each for each in kept - known if sequence_of(each) >= CATALOG_NUMBERS_END}
        assert not orphans, f"the partitions {orphans} are on no map and still exist"
