"""The stored records of catalog, jobs and tasks: the bytes that earlier versions wrote open, and are written again."""

from __future__ import annotations

import pytest

from asterism.keyspaces.catalog.accounts import AccountQuotas, AccountRecord
from asterism.keyspaces.catalog.nodes import NodeRecord
from asterism.keyspaces.catalog.owned_records import OwnedRecord
from asterism.keyspaces.catalog.records import DatabaseRecord, KeyspaceRecord, OfferRecord
from asterism.keyspaces.reshaping.job import Cursor, Progress, ReshapeJob, Step, Target
from asterism.models.documents.rekey.job import RekeyJob, RekeyPhase, Uncopied
from asterism.models.documents.upkeep.background_task import BackgroundTask, TaskKind
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import initial_map
from asterism.partitioning.placement import NodeState, Rules
from asterism.throughput.budgets import Autoscale, Manual
from asterism.values.identifiers import Epoch, NodeNumber, PartitionNumber

RID = bytes(range(1, 9))
DEFINITION = PartitionKeyDefinition(paths=("/pk",))
MAP = initial_map(DEFINITION, [PartitionNumber(16)], epoch=Epoch(1))
MAP_BYTES = (
    b'{"version":1,"nextId":1,"ranges":[{"id":0,"range":["","FF"],"partition":16,"epoch":1,"parents":[],'
    b'"sinceVersion":1,"status":"online"}],"retired":[]}'
)
HALVES = (
    Target(PartitionNumber(17), KeyRange(b"", b"\x80")),
    Target(PartitionNumber(18), KeyRange(b"\x80", b"\xff")),
)
WHOLE = (Target(PartitionNumber(17), KeyRange(b"", b"\xff")),)

# As the version before records had a shared form wrote them, byte for byte.
WRITTEN = [
    (
        DatabaseRecord(RID[:4], "blue", "d", "e1", 1700000000),
        b'{"rid":"01020304","account":"blue","name":"d","etag":"e1","changed_at":1700000000}',
    ),
    (
        KeyspaceRecord(RID, "c", {"indexingPolicy": {"automatic": True}}, DEFINITION, MAP, "e2", 1700000001),
        b'{"rid":"0102030405060708","name":"c","settings":{"indexingPolicy":{"automatic":true}},"definition":'
        b'{"paths":["/pk"],"kind":"Hash","version":2},"map":' + MAP_BYTES + b',"etag":"e2","changed_at":1700000001,'
        b'"catching_up":{},"writes_refused":"","layout":2}',
    ),
    (
        KeyspaceRecord(
            RID,
            "c",
            {},
            DEFINITION,
            MAP,
            "e2",
            1700000001,
            {"policies": [{}], "mark": "m"},
            Rules(frozenset({"b", "a"}), True),
            "Moved.",
            1,
        ),
        b'{"rid":"0102030405060708","name":"c","settings":{},"definition":{"paths":["/pk"],"kind":"Hash","version":2},'
        b'"map":' + MAP_BYTES + b',"etag":"e2","changed_at":1700000001,"catching_up":{"policies":[{}],"mark":"m"},'
        b'"placement":{"labels":["a","b"],"spread":true},"writes_refused":"Moved.","layout":1}',
    ),
    (
        OfferRecord(RID[:3], RID[:4], Manual(400), 1000, "e3", 1700000002),
        b'{"rid":"010203","resource_rid":"01020304","throughput":{"kind":"manual","ruPerSecond":400},'
        b'"highest_ever_ru":1000,"etag":"e3","changed_at":1700000002}',
    ),
    (
        OfferRecord(RID[:3], RID[:4], Autoscale(4000, 0), 4000, "e3", 1700000002),
        b'{"rid":"010203","resource_rid":"01020304","throughput":{"kind":"autoscale","maxRuPerSecond":4000,'
        b'"incrementPercent":0},"highest_ever_ru":4000,"etag":"e3","changed_at":1700000002}',
    ),
    (
        AccountRecord("blue", "storage", "a2V5", "a2V6", "Strong", 1700000003, AccountQuotas(1, None, 5000), True),
        b'{"name":"blue","kind":"storage","primary_key":"a2V5","secondary_key":"a2V6","consistency":"Strong",'
        b'"changed_at":1700000003,"quotas":{"databases_max":1,"containers_max":null,"ru_per_second_max":5000},'
        b'"is_closing":true}',
    ),
    (
        NodeRecord(NodeNumber(3), "n3", frozenset({"ssd", "eu"}), NodeState.DRAINING),
        b'{"number":3,"name":"n3","labels":["eu","ssd"],"state":"draining"}',
    ),
    (
        OwnedRecord(RID[:5], "u", {"permissionMode": "Read"}, "e4", 1700000004),
        b'{"rid":"0102030405","name":"u","properties":{"permissionMode":"Read"},"etag":"e4","changed_at":1700000004}',
    ),
    (
        ReshapeJob(17, RID, "demand", (0,), HALVES, Epoch(2), 1700000005, Cursor(0, 3, b"\x10\xab")),
        b'{"id":17,"keyspace":"0102030405060708","reason":"demand","sources":[0],"targets":[[17,"","80"],'
        b'[18,"80","ff"]],"epoch":2,"started_at":1700000005,"cursor":[0,3,"10ab"]}',
    ),
    (
        Progress(ReshapeJob(17, RID, "demand", (0, 1), WHOLE, Epoch(2), 1700000005), Step.COPYING, 12, 0.0, "waits"),
        b'{"id":17,"keyspace":"0102030405060708","reason":"demand","sources":[0,1],"targets":[[17,"","ff"]],"epoch":2,'
        b'"started_at":1700000005,"cursor":[0,0,""],"progress":{"step":"copying","entries":12,"trouble":"waits"}}',
    ),
    (
        RekeyJob(
            number=1,
            source_rid="0102",
            target_rid="0304",
            phase=RekeyPhase.FOLLOWING,
            copied_up_to="80",
            feed_position="pos",
            followed_at_wall_seconds=5,
            retention_before=10,
            items_copied=7,
            uncopied={"ab": Uncopied("i", ["p", 1], "why")},
        ),
        b'{"number":1,"source_rid":"0102","target_rid":"0304","phase":"following","copied_up_to":"80",'
        b'"feed_position":"pos","followed_at_wall_seconds":5,"retention_before":10,"is_switching":false,'
        b'"must_sweep":false,"items_copied":7,"changes_followed":0,"source_items":0,"target_items":0,'
        b'"uncopied":{"ab":{"id":"i","partition_key":["p",1],"reason":"why"}},"trouble":"","is_caught_up":false}',
    ),
    (
        BackgroundTask(4, TaskKind.INDEX_EXPIRY, RID, b"\x10", b"\xff", 9, 3),
        b'{"number":4,"kind":"index-expiry","keyspace_rid":"0102030405060708","start":"10","end":"ff","up_to_lsn":9,'
        b'"done":3}',
    ),
]
Written = (
    DatabaseRecord
    | KeyspaceRecord
    | OfferRecord
    | AccountRecord
    | NodeRecord
    | OwnedRecord
    | ReshapeJob
    | Progress
    | RekeyJob
    | BackgroundTask
)


@pytest.mark.parametrize(("record", "stored"), WRITTEN, ids=lambda value: type(value).__name__)
def test_the_bytes_of_the_version_before_open_and_are_written_again(record: Written, stored: bytes) -> None:
    assert type(record).from_bytes(stored) == record
    assert record.to_bytes() == stored


def test_a_keyspace_of_the_first_version_has_the_first_layout_and_nothing_to_catch_up() -> None:
    stored = (
        b'{"rid":"0102030405060708","name":"c","settings":{},"definition":{"paths":["/pk"],"kind":"Hash","version":2},'
        b'"map":' + MAP_BYTES + b',"etag":"e2","changed_at":1700000001}'
    )
    record = KeyspaceRecord.from_bytes(stored)
    assert (record.layout, record.catching_up, record.placement, record.writes_refused) == (1, {}, None, "")
