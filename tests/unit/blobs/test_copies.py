"""Copies of blobs: what they copy, and what becomes of them when they are aborted, refused, or left unfinished."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from asterism.models.blobs import copied_data, copies, copy_changes
from asterism.models.blobs.calls import CURRENT, BlockEntry, BlockSource, NewBlob, Snapshot, Version, Which
from asterism.models.blobs.changes import SetMetadata
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.copied_data import CopiedPart
from asterism.models.blobs.copy_job import CopyJob, CopySource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.incremental_copies import copy_incrementally
from asterism.models.blobs.layout import COPIES, DATA, UPLOADS
from asterism.models.blobs.page_maps import CHUNK_BYTES as PAGES_BYTES
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.rules import NO_RULES, AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.values.ticks import timestamp_text
from tests.support.blobs import BlobWorld, append, create_append, get, put, put_block, run_blobs

URL = "http://127.0.0.1/acct/c/source"
LARGE = bytes(range(256)) * 4096 * 3


async def copy(
    world: BlobWorld,
    container: Container,
    name: str,
    *,
    target: Container | None = None,
    to: str = "copy",
    which: Which = CURRENT,
    properties: NewBlob | None = None,
    conditions: Conditions = NO_CONDITIONS,
    rules: AccountRules = NO_RULES,
    at_once: bool = False,
) -> BlobRecord:
    record = await container.find(name, which)
    source = CopySource(container, which, record, URL)
    return await world.blobs.copies.copy(
        target or container, to, source, properties or NewBlob(), conditions, rules, at_once=at_once
    )


async def settled(container: Container, name: str = "copy") -> BlobRecord:
    record = await container.find(name)
    while record.copy_state is not None and record.copy_state.status == "pending":
        await asyncio.sleep(0.01)
        record = await container.find(name)
    return record


async def refusal(call: object) -> BlobFailure:
    with pytest.raises(BlobRefused) as caught:
        await call  # type: ignore[misc]  # any coroutine
    return caught.value.failure


def status(record: BlobRecord) -> tuple[str, int, int]:
    state = record.copy_state
    assert state is not None
    return state.status, state.bytes_copied, state.bytes_total


class HeldCopies:
    """Copies in the background that wait before or after each part that they store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before, self.after, self.has_stored = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def store_copied(space: BlobSpace, point: bytes, job: CopyJob, part: CopiedPart) -> CopyJob:
            await self.before.wait()
            stored = await copy_changes.store_copied(space, point, job, part)
            self.has_stored.set()
            await self.after.wait()
            return stored

        monkeypatch.setattr(copies, "store_copied", store_copied)


@pytest.mark.parametrize("size", [0, 10, 4096, 4097, 3 * 1024 * 1024 + 5])
def test_a_block_blob_is_copied_to_another_container_and_lives_on_without_its_source(size: int) -> None:
    async def test(world: BlobWorld) -> None:
        first, second = await world.container("c"), await world.container("d")
        data = (LARGE + LARGE)[:size]
        await put(first, "source", data, NewBlob(metadata={"not": "copied"}))
        copied = await copy(world, first, "source", target=second, properties=NewBlob(metadata={"a": "1"}))
        assert status(copied) == ("success", size, size)
        assert copied.metadata == {"a": "1"}
        await first.delete("source")
        assert await get(second, "copy") == data
        assert await world.entries(second, UPLOADS) == []
        await world.check_statistics(second)

    run_blobs(test)


def test_the_blocks_of_a_blob_are_those_of_its_copy() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        pieces = {b"1": b"a" * 300_000, b"2": b"b" * 700_000, b"3": b"c" * 10}
        for block_id, piece in pieces.items():
            await put_block(container, "source", block_id, piece)
        await container.commit_blocks(
            "source", [BlockEntry(BlockSource.LATEST, block_id) for block_id in pieces], NewBlob()
        )
        await copy(world, container, "source")
        lists = await container.block_list("copy")
        assert [(block.block_id, block.size) for block in lists.committed] == [
            (block_id, len(piece)) for block_id, piece in pieces.items()
        ]
        assert await get(container, "copy") == b"".join(pieces.values())
        await container.commit_blocks("copy", [BlockEntry(BlockSource.COMMITTED, b"2")], NewBlob())
        assert await get(container, "copy") == pieces[b"2"]
        await world.check_statistics(container)

    run_blobs(test)


def test_a_long_list_of_blocks_is_copied() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for number in range(60):
            await put_block(container, "source", b"%03d" % number, b"%03d" % number * 7)
        entries = [BlockEntry(BlockSource.LATEST, b"%03d" % number) for number in range(60)]
        await container.commit_blocks("source", entries, NewBlob())
        await copy(world, container, "source")
        assert await get(container, "copy") == b"".join(b"%03d" % number * 7 for number in range(60))
        await world.check_statistics(container)

    run_blobs(test)


def test_an_append_blob_is_copied_and_both_go_on() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_append(container, "source")
        for piece in (b"one", LARGE, b"two"):
            await append(container, "source", piece)
        copied = await copy(world, container, "source")
        assert (copied.kind, copied.committed_blocks) == (BlobKind.APPEND, 3)
        await append(container, "source", b"!")
        await append(container, "copy", b"?")
        assert await get(container, "source") == b"one" + LARGE + b"two!"
        assert await get(container, "copy") == b"one" + LARGE + b"two?"
        await world.check_statistics(container)

    run_blobs(test)


def test_a_page_blob_is_copied_with_its_ranges_and_its_sequence_number() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        size = 200 * PAGES_BYTES
        await container.put_blob("source", None, NewBlob(BlobKind.PAGE, size, sequence_number=7))
        for place in (0, 3, 150):
            await container.pages.put_pages("source", place * PAGES_BYTES + 512, bytes([place + 1]) * 1024)
        copied = await copy(world, container, "source")
        assert (status(copied)[0], copied.size, copied.sequence_number) == ("success", size, 7)
        assert await get(container, "copy") == await get(container, "source")
        _, ranges = await container.pages.ranges("copy")
        assert ranges == (await container.pages.ranges("source"))[1]
        assert await world.entries(container, COPIES) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_a_snapshot_is_copied_over_its_blob() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "b", LARGE)
        await container.put_blob("p", None, NewBlob(BlobKind.PAGE, PAGES_BYTES))
        await container.pages.put_pages("p", 0, b"1" * 512)
        await create_append(container, "a")
        await append(container, "a", b"one")
        moments = {name: Snapshot((await container.snapshot(name)).snapshot) for name in "bpa"}
        await put(container, "b", b"changed")
        await container.pages.put_pages("p", 0, b"2" * 1024)
        await append(container, "a", b"two")
        for name, which in moments.items():
            await copy(world, container, name, to=name, which=which)
        assert await get(container, "b") == LARGE
        assert await get(container, "p") == b"1" * 512 + bytes(PAGES_BYTES - 512)
        assert await get(container, "a") == b"one"
        await append(container, "a", b"!")
        await container.pages.put_pages("p", 512, b"3" * 512)
        assert [(await get(container, name, which))[:8] for name, which in moments.items()] == [
            LARGE[:8],
            b"1" * 8,
            b"one",
        ]
        await world.check_statistics(container)

    run_blobs(test)


def test_a_blob_is_copied_onto_itself_with_other_properties() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "b", LARGE)
        await container.put_blob("p", None, NewBlob(BlobKind.PAGE, PAGES_BYTES))
        await container.pages.put_pages("p", 0, b"1" * 512)
        rules = AccountRules(versioning=True)
        for name in "bp":
            before = await get(container, name)
            copied = await copy(world, container, name, to=name, properties=NewBlob(tier="Cool"), rules=rules)
            assert copied.tier == "Cool"
            assert await get(container, name) == before
        await container.pages.put_pages("p", 0, b"2" * 512)
        assert (await get(container, "p"))[:512] == b"2" * 512
        await world.check_statistics(container)

    run_blobs(test)


async def append_letters(container: Container, letters: bytes) -> None:
    await append(container, "b", letters * 512)


async def overwrite_page(container: Container, letters: bytes) -> None:
    await container.pages.put_pages("b", 0, letters * 512)


@pytest.mark.parametrize(
    ("new", "write"),
    [(NewBlob(BlobKind.APPEND), append_letters), (NewBlob(BlobKind.PAGE, PAGES_BYTES), overwrite_page)],
)
def test_a_version_that_is_replaced_while_it_is_copied_to_its_own_name_does_not_share_its_data(
    new: NewBlob, write: Callable[[Container, bytes], Awaitable[None]]
) -> None:
    async def test(world: BlobWorld) -> None:
        container, rules = await world.container(), AccountRules(versioning=True)
        await container.put_blob("b", None, new, rules=rules)
        await write(container, b"1")
        found = await container.find("b")
        assert found.version is not None
        which = Version(found.version)
        source = CopySource(container, which, await container.find("b", which), URL)
        await container.change("b", SetMetadata({"a": "1"}), rules=rules)
        await write(container, b"2")
        kept = Snapshot((await container.snapshot("b", rules=rules)).snapshot)
        expected = [await get(container, "b", which), await get(container, "b", kept)]
        call = world.blobs.copies.copy(container, "b", source, NewBlob(), NO_CONDITIONS, rules)
        assert await refusal(call) is BlobFailure.SOURCE_CONDITION_NOT_MET
        await copy(world, container, "b", to="b", which=which, rules=rules)
        assert await get(container, "b") == expected[0]
        await write(container, b"3")
        assert [await get(container, "b", which), await get(container, "b", kept)] == expected

    run_blobs(test)


def test_a_copy_that_is_refused_leaves_nothing_behind() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        await put(container, "copy", b"before")
        stored = len(await world.entries(container, DATA))
        never = Conditions(if_none_match=("*",))
        assert await refusal(copy(world, container, "source", conditions=never)) is BlobFailure.EXISTS
        assert await get(container, "copy") == b"before"
        assert len(await world.entries(container, DATA)) == stored
        assert await world.entries(container, UPLOADS) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_a_large_copy_is_pending_until_all_data_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)
    monkeypatch.setattr(copies, "_PROGRESS_BYTES", 1)
    held = HeldCopies(monkeypatch)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        pending = await copy(world, container, "source")
        assert status(pending) == ("pending", 0, len(LARGE))
        assert pending.size == 0
        assert await refusal(put(container, "copy", b"meanwhile")) is BlobFailure.PENDING_COPY
        held.before.set()
        held.after.set()
        done = await settled(container)
        assert status(done) == ("success", len(LARGE), len(LARGE))
        assert done.etag > pending.etag
        assert await get(container, "copy") == LARGE
        assert await world.entries(container, COPIES) == []
        assert await world.entries(container, UPLOADS) == []
        await world.check_statistics(container)

    run_blobs(test)


@pytest.mark.parametrize("kind", [BlobKind.BLOCK, BlobKind.PAGE])
def test_a_copy_that_is_aborted_has_no_data_and_gives_its_name_free(
    monkeypatch: pytest.MonkeyPatch, kind: BlobKind
) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)
    HeldCopies(monkeypatch)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await make_source(container, kind)
        pending = await copy(world, container, "source")
        assert pending.copy_state is not None
        abort = world.blobs.copies.abort
        assert await refusal(abort(container, "copy", "another")) is BlobFailure.COPY_ID_MISMATCH
        await abort(container, "copy", pending.copy_state.copy_id)
        aborted = await container.find("copy")
        assert (status(aborted)[0], aborted.size) == ("aborted", 0)
        call = abort(container, "copy", pending.copy_state.copy_id)
        assert await refusal(call) is BlobFailure.NO_PENDING_COPY
        assert await world.entries(container, COPIES) == []
        await put(container, "copy", b"after")
        assert await get(container, "copy") == b"after"

    run_blobs(test)


async def make_source(container: Container, kind: BlobKind) -> None:
    if kind is BlobKind.PAGE:
        await container.put_blob("source", None, NewBlob(BlobKind.PAGE, len(LARGE)))
        await container.pages.put_pages("source", 0, LARGE)
    else:
        await put(container, "source", LARGE)


@pytest.mark.parametrize("kind", [BlobKind.BLOCK, BlobKind.PAGE])
def test_no_snapshot_is_taken_of_a_blob_while_it_is_copied_to(monkeypatch: pytest.MonkeyPatch, kind: BlobKind) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await make_source(container, kind)
        await copy(world, container, "source")
        assert await refusal(container.snapshot("copy")) is BlobFailure.PENDING_COPY
        await settled(container)
        taken = (await container.snapshot("copy")).snapshot
        assert await get(container, "copy", Snapshot(taken)) == LARGE

    run_blobs(test)


@pytest.mark.parametrize("kind", [BlobKind.BLOCK, BlobKind.PAGE])
def test_a_copy_that_was_cut_off_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch, kind: BlobKind) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)
    monkeypatch.setattr(copied_data, "BATCH_BYTES", 256 * 1024)
    held = HeldCopies(monkeypatch)
    held.before.set()

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await make_source(container, kind)
        await copy(world, container, "source")
        await held.has_stored.wait()
        await world.blobs.copies.stop()
        held.after.set()
        assert len(await world.entries(container, COPIES)) == 1
        restarted = copies.Copies(world.blobs.find_container)
        world.skew.seconds = copies.ORPHANED_SECONDS + 1
        assert await restarted.resume(world.blobs.containers()) == 1
        done = await settled(container)
        assert status(done) == ("success", len(LARGE), len(LARGE))
        assert await get(container, "copy") == LARGE
        await world.check_statistics(container)

    run_blobs(test)


def test_the_copy_of_a_small_page_blob_does_not_wait_for_large_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)
    monkeypatch.setattr(copies, "_COPIES_AT_ONCE", 2)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        await container.put_blob("pages", None, NewBlob(BlobKind.PAGE, 512))
        held = HeldCopies(monkeypatch)
        for number in range(copies._COPIES_AT_ONCE):
            await copy(world, container, "source", to=f"large{number}")
        # No page has data, so nothing is stored that could be held.
        small = await copy(world, container, "pages")
        assert status(small) == ("success", 512, 512)
        held.before.set()
        held.after.set()
        await settled(container, "large0")

    run_blobs(test)


def test_a_copy_whose_source_changes_or_goes_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)
    held = HeldCopies(monkeypatch)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        await copy(world, container, "source")
        await world.blobs.copies.stop()
        await copy(world, container, "source", to="second")
        await world.blobs.copies.stop()
        await put(container, "source", b"other")
        held.before.set()
        held.after.set()
        world.skew.seconds = copies.ORPHANED_SECONDS + 1
        await world.blobs.copies.resume(world.blobs.containers())
        failed = await settled(container)
        assert failed.copy_state is not None
        assert (failed.copy_state.status, failed.size) == ("failed", 0)
        assert failed.copy_state.description == "412 ConditionNotMet The source has changed."
        assert status(await settled(container, "second"))[0] == "failed"

    run_blobs(test)


def test_a_copy_that_must_be_complete_is_not_pending_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        assert status(await copy(world, container, "source", at_once=True))[0] == "success"
        assert await get(container, "copy") == LARGE

    run_blobs(test)


# --- incremental copies ---------------------------------------------------------------------------------------------


async def copy_snapshot(container: Container, to: str = "copy") -> tuple[Snapshot, BlobRecord]:
    moment = (await container.snapshot("source")).snapshot
    record = await container.find("source", Snapshot(moment))
    url = f"{URL}?snapshot={timestamp_text(moment)}"
    copied = await copy_incrementally(container, to, CopySource(container, Snapshot(moment), record, url))
    return Snapshot(moment), copied


def snapshot_of(record: BlobRecord) -> Snapshot:
    assert record.copy_state is not None
    assert record.copy_state.destination_snapshot is not None
    return Snapshot(record.copy_state.destination_snapshot)


def test_incremental_copies_are_snapshots_that_differ_as_their_sources_do() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        size = 10 * PAGES_BYTES
        await container.put_blob("source", None, NewBlob(BlobKind.PAGE, size, sequence_number=3))
        await container.pages.put_pages("source", 0, b"a" * 3 * PAGES_BYTES)
        pairs = [await copy_snapshot(container)]
        await container.pages.put_pages("source", PAGES_BYTES, b"b" * 512)
        await container.pages.clear_pages("source", 2 * PAGES_BYTES, 3 * PAGES_BYTES)
        pairs.append(await copy_snapshot(container))
        await container.pages.put_pages("source", 9 * PAGES_BYTES, b"c" * PAGES_BYTES)
        pairs.append(await copy_snapshot(container))
        for which, copied in pairs:
            assert copied.is_incremental_copy
            assert status(copied) == ("success", size, size)
            assert await get(container, "copy", snapshot_of(copied)) == await get(container, "source", which)
        for (earlier, copied_earlier), (later, copied_later) in pairwise(pairs):
            _, expected = await container.pages.ranges("source", later, previous=earlier)
            found = await container.pages.ranges(
                "copy", snapshot_of(copied_later), previous=snapshot_of(copied_earlier)
            )
            assert found[1] == expected
        await world.check_statistics(container)

    run_blobs(test)


def test_an_incremental_copy_takes_only_later_snapshots_of_the_same_page_blob() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await container.put_blob("source", None, NewBlob(BlobKind.PAGE, PAGES_BYTES))
        which, _ = await copy_snapshot(container)
        record = await container.find("source", which)
        again = CopySource(container, which, record, f"{URL}?snapshot={timestamp_text(which.ticks)}")
        call = copy_incrementally(container, "copy", again)
        assert await refusal(call) is BlobFailure.INCREMENTAL_COPY_OF_EARLIER_SNAPSHOT
        other = CopySource(container, which, record, again.url.replace("source", "other"))
        call = copy_incrementally(container, "copy", other)
        assert await refusal(call) is BlobFailure.INCREMENTAL_COPY_BLOB_MISMATCH
        base = CopySource(container, CURRENT, await container.find("source"), URL)
        call = copy_incrementally(container, "new", base)
        assert await refusal(call) is BlobFailure.INCREMENTAL_COPY_SOURCE_MUST_BE_SNAPSHOT
        assert await refusal(copy_snapshot(container, "source")) is BlobFailure.INCREMENTAL_COPY_NOT_ALLOWED
        call = container.pages.put_pages("copy", 0, bytes(512))
        assert await refusal(call) is BlobFailure.INCREMENTAL_COPY_NOT_ALLOWED

    run_blobs(test)
