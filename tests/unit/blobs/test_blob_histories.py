"""Random histories of blobs against a plain model of bytes, with snapshots, versions, upkeep and splits between."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from asterism.errors import ReshapeRefused
from asterism.models.blobs.calls import (
    BlockEntry,
    BlockSource,
    ListQuery,
    NewBlob,
    Snapshot,
    SnapshotDeletion,
    Version,
    Which,
)
from asterism.models.blobs.changes import SetMetadata
from asterism.models.blobs.failures import BlobRefused
from asterism.models.blobs.layout import DATA, GARBAGE, MANIFESTS, UPLOADS
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.upkeep import BlobUpkeep
from tests.support.blobs import BlobWorld, append, content_of, get, listed, open_blobs, put, put_block

NAMES = st.sampled_from(["a", "a/b", "é", "x" * 240, "x" * 239 + "y"])
SIZES = st.sampled_from([0, 1, 5_000, 70_000, 300_000, 1_300_000])
BLOCK_IDS = st.sampled_from([b"1", b"2", b"3"])
PATTERN = bytes(range(251))


def data_of(seed: int, size: int) -> bytes:
    start = seed % len(PATTERN)
    return (PATTERN[start:] + PATTERN * (size // len(PATTERN) + 1))[:size]


@dataclass
class ModelBlob:
    """Everything that a name has."""

    current: bytes | None = None
    is_append: bool = False
    committed: dict[bytes, bytes] = field(default_factory=dict)
    uncommitted: dict[bytes, bytes] = field(default_factory=dict)
    # Snapshots and versions, with their contents.
    kept: dict[Which, bytes] = field(default_factory=dict)


class BlobHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._opened = open_blobs(None)
        self._world: BlobWorld = self._run(self._opened.__aenter__())
        self._container = self._run(self._world.container())
        self._model: dict[str, ModelBlob] = {}
        self._seed = 0

    def _run(self, call: Any) -> Any:
        return self._loop.run_until_complete(call)

    def teardown(self) -> None:
        self._run(self._check_garbage())
        self._run(self._opened.__aexit__(None, None, None))
        self._loop.close()

    @initialize(versioning=st.booleans())
    def choose(self, versioning: bool) -> None:
        self._rules = AccountRules(versioning=versioning)

    def _blob(self, name: str) -> ModelBlob:
        return self._model.setdefault(name, ModelBlob())

    def _data(self, size: int) -> bytes:
        self._seed += 1
        return data_of(self._seed, size)

    def _replaced(self, name: str, version: int | None) -> ModelBlob:
        """Note that a blob was replaced; return what is left of the name."""
        blob = self._blob(name)
        if self._rules.versioning and blob.current is not None and version is not None:
            blob.kept[Version(version)] = blob.current
        blob.committed, blob.uncommitted, blob.is_append = {}, {}, False
        return blob

    async def _version_now(self, name: str) -> int | None:
        try:
            record: BlobRecord = await self._container.find(name)
        except BlobRefused:
            return None
        return record.version

    @rule(name=NAMES, size=SIZES)
    def put_blob(self, name: str, size: int) -> None:
        data, version = self._data(size), self._run(self._version_now(name))
        self._run(put(self._container, name, data, rules=self._rules))
        self._replaced(name, version).current = data

    @rule(name=NAMES)
    def create_append_blob(self, name: str) -> None:
        version = self._run(self._version_now(name))
        self._run(self._container.put_blob(name, None, NewBlob(BlobKind.APPEND), rules=self._rules))
        blob = self._replaced(name, version)
        blob.current, blob.is_append = b"", True

    @rule(name=NAMES, size=SIZES, count=st.integers(min_value=1, max_value=4))
    def append_blocks(self, name: str, size: int, count: int) -> None:
        blob = self._blob(name)
        if blob.current is None:
            self._run(self._container.put_blob(name, None, NewBlob(BlobKind.APPEND), rules=self._rules))
            blob.current, blob.is_append, blob.uncommitted = b"", True, {}
        for _ in range(count if blob.is_append else 0):
            data = self._data(size)
            self._run(append(self._container, name, data))
            blob.current += data

    @rule(name=NAMES, block_id=BLOCK_IDS, size=SIZES)
    def put_a_block(self, name: str, block_id: bytes, size: int) -> None:
        blob = self._blob(name)
        if not blob.is_append:
            data = self._data(size)
            self._run(put_block(self._container, name, block_id, data))
            blob.uncommitted[block_id] = data

    @rule(name=NAMES, wanted=st.lists(BLOCK_IDS, max_size=45))
    def commit_blocks(self, name: str, wanted: list[bytes]) -> None:
        blob = self._blob(name)
        latest = {**blob.committed, **blob.uncommitted}
        ids = [block_id for block_id in wanted if block_id in latest]
        if blob.is_append:
            return
        version = self._run(self._version_now(name))
        entries = [BlockEntry(BlockSource.LATEST, block_id) for block_id in ids]
        self._run(self._container.commit_blocks(name, entries, NewBlob(), rules=self._rules))
        blob = self._replaced(name, version)
        blob.committed = {block_id: latest[block_id] for block_id in ids}
        blob.current = b"".join([latest[block_id] for block_id in ids])

    @rule(name=NAMES)
    def take_snapshot(self, name: str) -> None:
        blob = self._blob(name)
        if blob.current is not None:
            taken = self._run(self._container.snapshot(name))
            blob.kept[Snapshot(taken.snapshot)] = blob.current

    @rule(name=NAMES)
    def set_metadata(self, name: str) -> None:
        blob = self._blob(name)
        if blob.current is not None:
            version = self._run(self._version_now(name))
            self._run(self._container.change(name, SetMetadata({"a": "b"}), rules=self._rules))
            if self._rules.versioning:
                blob.kept[Version(version)] = blob.current

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        blob = self._blob(name)
        if blob.current is not None:
            version = self._run(self._version_now(name))
            self._run(self._container.delete(name, rules=self._rules, snapshots=SnapshotDeletion.INCLUDE))
            blob = self._replaced(name, version)
            blob.current = None
            blob.kept = {which: data for which, data in blob.kept.items() if isinstance(which, Version)}

    @rule(name=NAMES, pick=st.integers(min_value=0))
    def delete_kept(self, name: str, pick: int) -> None:
        blob = self._blob(name)
        if blob.kept:
            which = list(blob.kept)[pick % len(blob.kept)]
            self._run(self._container.delete(name, which, rules=self._rules))
            del blob.kept[which]

    @rule(seconds=st.sampled_from([10, 400]))
    def pass_time(self, seconds: int) -> None:
        self._world.skew.seconds += seconds
        self._run(BlobUpkeep(self._world.blobs).sweep())

    @precondition(lambda self: len(self._container.keyspace.record.map.ranges) < 4)
    @rule()
    def split(self) -> None:
        async def split() -> None:
            reshaper, keyspace = self._world.world.reshaper, self._container.keyspace
            try:
                await reshaper.finished(await reshaper.split(keyspace, keyspace.record.map.ranges[-1].id))
            except ReshapeRefused:
                return

        self._run(split())

    @rule(name=NAMES, start=st.integers(0, 2_000_000), size=st.integers(0, 400_000))
    def read_a_range(self, name: str, start: int, size: int) -> None:
        for which, data in self._blob(name).kept.items():
            assert self._run(get(self._container, name, which, start, start + size)) == data[start : start + size]

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        self._run(self._check())

    async def _check(self) -> None:
        names = {name for name, blob in self._model.items() if blob.current is not None}
        assert {record.name for record in await listed(self._container, ListQuery())} == names
        for name in names:
            record = await self._container.find(name)
            assert await content_of(self._container, record) == self._model[name].current
        await self._world.check_statistics(self._container)

    async def _check_garbage(self) -> None:
        """Check that, once upkeep has run, exactly the data that records refer to are left."""
        for _ in range(2):
            self._world.skew.seconds += 400
            await BlobUpkeep(self._world.blobs).sweep()
        await self._check()
        for name, blob in self._model.items():
            for which, data in blob.kept.items():
                assert await get(self._container, name, which) == data
        assert await self._world.entries(self._container, GARBAGE) == []
        assert await self._world.entries(self._container, UPLOADS) == []
        for name in self._model:
            for which in [*self._model[name].kept]:
                await self._container.delete(name, which)
            if self._model[name].current is not None:
                await self._container.delete(name)
        self._world.skew.seconds += 8 * 24 * 3600
        await BlobUpkeep(self._world.blobs).sweep()
        self._world.skew.seconds += 400
        await BlobUpkeep(self._world.blobs).sweep()
        for family in (DATA, MANIFESTS, GARBAGE):
            assert await self._world.entries(self._container, family) == []
        await self._world.check_statistics(self._container)


TestBlobHistory = BlobHistory.TestCase
TestBlobHistory.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
