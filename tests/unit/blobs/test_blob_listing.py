"""Listings against a plain model: names of any characters and lengths, prefixes, delimiters, pages, snapshots."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.models.blobs import finding
from asterism.models.blobs.calls import ListQuery, Marker, NewBlob, SnapshotDeletion
from asterism.models.blobs.record import BlobRecord, Role
from asterism.models.blobs.rules import AccountRules
from asterism.values.ordered_text import ordered_text
from tests.support.blobs import BlobWorld, listed, open_blobs, pages_of, put, put_block, run_blobs

LONG = "x" * 230
PIECES = ("a", "b", "/", "//", "é", "\ue000", "\U0001f600", "\U0001f601", "0", " ", LONG, LONG[:226], "\uffff", "\x01")
NAMES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


def entry_of(found: BlobRecord | str) -> str:
    return found if isinstance(found, str) else found.name


def expected_entries(names: set[str], prefix: str, delimiter: str) -> list[str]:
    entries: list[str] = []
    for name in sorted(names, key=ordered_text):
        if name.startswith(prefix):
            at = name.find(delimiter, len(prefix)) if delimiter else -1
            entry = name if at < 0 else name[: at + len(delimiter)]
            if not entries or entries[-1] != entry:
                entries.append(entry)
    return entries


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    names=st.sets(NAMES, min_size=1, max_size=40),
    prefix=st.one_of(st.just(""), NAMES),
    delimiter=st.sampled_from(["", "/", "//", "a", LONG]),
    limit=st.integers(min_value=1, max_value=7),
    splits=st.integers(min_value=0, max_value=2),
)
def test_pages_of_a_listing_have_every_name_and_prefix_in_order_once(
    names: set[str], prefix: str, delimiter: str, limit: int, splits: int
) -> None:
    async def test() -> None:
        async with open_blobs(None) as world:
            container = await world.container()
            for name in names:
                await put(container, name, b"data")
            reshaper, keyspace = world.world.reshaper, container.keyspace
            for _ in range(splits if len(names) > 20 else 0):
                await reshaper.finished(await reshaper.split(keyspace, keyspace.record.map.ranges[-1].id))
            query = ListQuery(prefix=prefix, delimiter=delimiter, limit=limit)
            found = [entry_of(entry) for entry in await pages_of(container, query)]
            assert found == expected_entries(names, prefix, delimiter)

    asyncio.run(test())


def test_many_names_below_a_prefix_cost_no_page() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for number in range(900):
            await put(container, f"{number // 300}/{number:04}", b"")
        await put(container, "3", b"")
        found = await pages_of(container, ListQuery(delimiter="/", limit=2))
        assert [entry_of(entry) for entry in found] == ["0/", "1/", "2/", "3"]

    run_blobs(test)


def test_snapshots_and_versions_are_listed_before_the_blob_from_the_oldest_on() -> None:
    async def test(world: BlobWorld) -> None:
        container, rules = await world.container(), AccountRules(versioning=True)
        await put(container, "a", b"plain")
        await put(container, "b", b"1", rules=rules)
        snapshots = [(await container.snapshot("b")).snapshot for _ in range(3)]
        await put(container, "b", b"2", rules=rules)
        await put(container, "c", b"gone", rules=rules)
        await container.delete("c", rules=rules)
        for limit in (1, 2, 100):
            found = await listed(container, ListQuery(snapshots=True, limit=limit))
            assert [(record.name, record.snapshot) for record in found] == [
                ("a", None),
                *(("b", moment) for moment in snapshots),
                ("b", None),
            ]
            found = await listed(container, ListQuery(versions=True, limit=limit))
            assert [(record.name, record.role) for record in found] == [
                ("a", Role.CURRENT),
                ("b", Role.VERSION),
                ("b", Role.CURRENT),
                ("c", Role.VERSION),
            ]
        assert len(await listed(container, ListQuery())) == 2

    run_blobs(test)


def test_deleted_records_and_uncommitted_names_are_listed_on_request() -> None:
    async def test(world: BlobWorld) -> None:
        container, rules = await world.container(), AccountRules(blob_retention_days=1)
        await put(container, "gone", b"data", rules=rules)
        await container.snapshot("gone")
        await container.delete("gone", rules=rules, snapshots=SnapshotDeletion.INCLUDE)
        await put_block(container, "unborn", b"a", b"data")
        for limit in (1, 100):
            assert await listed(container, ListQuery(limit=limit)) == []
            found = await listed(container, ListQuery(deleted=True, limit=limit))
            assert [(record.name, record.role) for record in found] == [("gone", Role.CURRENT)]
            found = await listed(container, ListQuery(deleted=True, snapshots=True, limit=limit))
            assert [record.role for record in found] == [Role.SNAPSHOT, Role.CURRENT]
            found = await listed(container, ListQuery(uncommitted=True, limit=limit))
            assert [(record.name, record.exists) for record in found] == [("unborn", False)]

    run_blobs(test)


def test_blobs_that_have_expired_are_not_listed() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        soon = world.blobs.services.next_ticks() + 10**9
        await put(container, "soon", b"data", NewBlob(expires_at=soon))
        await put(container, "kept", b"data")
        world.skew.seconds += 200
        assert [record.name for record in await listed(container, ListQuery())] == ["kept"]

    run_blobs(test)


def test_a_page_reads_the_snapshots_of_a_name_from_its_marker_on(monkeypatch: pytest.MonkeyPatch) -> None:
    unpack = finding.unpack_blob
    decoded: list[bytes] = []

    def unpack_counted(stored: bytes) -> BlobRecord:
        decoded.append(stored)
        return unpack(stored)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "a", b"data")
        moments = [(await container.snapshot("a")).snapshot for _ in range(70)]
        for limit in (1, 33, 100):
            found = await listed(container, ListQuery(snapshots=True, limit=limit))
            assert [record.snapshot for record in found] == [*moments, None]
        monkeypatch.setattr(finding, "unpack_blob", unpack_counted)
        page = await container.list(ListQuery(snapshots=True, after=Marker("a", moments[67])))
        assert [record.snapshot for record in page.entries if isinstance(record, BlobRecord)] == [*moments[67:], None]
        assert len(decoded) == 3

    run_blobs(test)


def test_a_prefix_is_listed_if_something_below_it_is_asked_for() -> None:
    async def test(world: BlobWorld) -> None:
        container, rules = await world.container(), AccountRules(blob_retention_days=1)
        for name in ("deleted/a", "snapshot/a", "blob/a"):
            await put(container, name, b"data")
        await container.snapshot("snapshot/a")
        await container.delete("deleted/a", rules=rules)
        await container.delete("snapshot/a", rules=rules, snapshots=SnapshotDeletion.INCLUDE)
        await put_block(container, "unborn/a", b"1", b"data")
        for query, prefixes in (
            (ListQuery(delimiter="/"), ["blob/"]),
            (ListQuery(delimiter="/", snapshots=True), ["blob/"]),
            (ListQuery(delimiter="/", deleted=True), ["blob/", "deleted/", "snapshot/"]),
            (ListQuery(delimiter="/", uncommitted=True), ["blob/", "unborn/"]),
        ):
            assert await pages_of(container, query) == prefixes

    run_blobs(test)
