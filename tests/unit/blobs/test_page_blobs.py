"""Page blobs on a store, against plain bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.models.blobs.calls import CURRENT, Key, NewBlob, Snapshot, Which
from asterism.models.blobs.conditions import Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import PAGE_MAPS, PAGES, point_of
from asterism.models.blobs.page_maps import CHUNK_BYTES, PAGE_BYTES, PageSpan
from asterism.models.blobs.pages import SEQUENCE_NUMBER_MAX, SequenceAction, SequenceCondition
from asterism.models.blobs.pages_removal import remove_unseen_pages
from asterism.models.blobs.record import BlobKind, BlobRecord
from tests.support.blobs import BlobWorld, get, run_blobs

PAGE = PAGE_BYTES
WEAK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def create_pages(container: Container, size: int, name: str = "p", **properties: object) -> BlobRecord:
    return await container.put_blob(name, None, NewBlob(BlobKind.PAGE, size, **properties))  # type: ignore[arg-type]


async def put(container: Container, start: int, data: bytes, name: str = "p") -> BlobRecord:
    return await container.pages.put_pages(name, start, data)


async def spans(
    container: Container, which: Which = CURRENT, previous: Snapshot | None = None, limit: int = 100
) -> list[tuple[int, int, bool]]:
    _, page = await container.pages.ranges("p", which, limit=limit, previous=previous)
    assert page.next is None
    return [tuple(span) for span in page.spans]


def plain(*found: tuple[int, int]) -> list[tuple[int, int, bool]]:
    return [(start, end, False) for start, end in found]


async def refusal(call: object) -> BlobFailure:
    with pytest.raises(BlobRefused) as caught:
        await call  # type: ignore[misc]  # any coroutine
    return caught.value.failure


# --- reading and writing ----------------------------------------------------------------------------------------------


def test_pages_that_were_never_written_are_zeros_and_cost_nothing() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        size = 8 * 1024**4
        await create_pages(container, size)
        await put(container, size - PAGE, b"z" * PAGE)
        assert await get(container, "p", start=size - 3 * PAGE, end=size) == bytes(2 * PAGE) + b"z" * PAGE
        assert await spans(container) == plain((size - PAGE, size))
        assert len(await world.entries(container, PAGES)) == 1
        await world.check_statistics(container)

    run_blobs(test)


def test_a_write_reaches_over_chunks_and_is_read_back_in_any_part() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, 20 * CHUNK_BYTES)
        data = bytes(range(256)) * 2 * (4 * 64 + 2)
        await put(container, CHUNK_BYTES - PAGE, data)
        expected = bytes(CHUNK_BYTES - PAGE) + data
        expected += bytes(20 * CHUNK_BYTES - len(expected))
        assert await get(container, "p") == expected
        assert await get(container, "p", start=1000, end=3 * CHUNK_BYTES + 77) == expected[1000 : 3 * CHUNK_BYTES + 77]
        await world.check_statistics(container)

    run_blobs(test)


def test_each_write_has_an_etag_of_its_own_and_conditions_hold_for_it() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        created = await create_pages(container, 4 * PAGE)
        written = await put(container, 0, b"a" * PAGE)
        assert written.etag > created.etag
        stale = Conditions(if_match=(created.etag,))
        call = container.pages.put_pages("p", 0, b"b" * PAGE, stale)
        assert await refusal(call) is BlobFailure.CONDITION_NOT_MET
        assert await get(container, "p") == b"a" * PAGE + bytes(3 * PAGE)

    run_blobs(test)


def test_writes_keep_to_pages_and_to_the_size() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, 4 * PAGE)
        pages = container.pages
        for start, length in ((1, PAGE), (0, PAGE - 1), (0, 0), (4 * PAGE, PAGE), (3 * PAGE, 2 * PAGE)):
            assert await refusal(pages.put_pages("p", start, bytes(length))) is BlobFailure.INVALID_RANGE
        assert await refusal(pages.clear_pages("p", 0, 5 * PAGE)) is BlobFailure.INVALID_RANGE
        assert await refusal(pages.put_pages("q", 0, bytes(PAGE))) is BlobFailure.NOT_FOUND
        await container.put_blob("a", None, NewBlob(BlobKind.APPEND))
        assert await refusal(pages.put_pages("a", 0, bytes(PAGE))) is BlobFailure.WRONG_KIND
        assert await refusal(pages.ranges("a")) is BlobFailure.WRONG_KIND

    run_blobs(test)


def test_writes_need_the_key_that_the_blob_was_made_with() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, PAGE, key=Key("one"))
        assert await refusal(container.pages.put_pages("p", 0, bytes(PAGE))) is BlobFailure.KEY_MISSING
        await container.pages.put_pages("p", 0, b"k" * PAGE, key=Key("one"))
        assert await get(container, "p") == b"k" * PAGE

    run_blobs(test)


# --- sizes and sequence numbers ---------------------------------------------------------------------------------------


def test_pages_behind_a_smaller_size_do_not_come_back() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, 4 * CHUNK_BYTES)
        await put(container, 0, b"x" * 4 * CHUNK_BYTES)
        await container.pages.resize("p", CHUNK_BYTES + PAGE)
        assert len(await world.entries(container, PAGES)) == 2
        await container.pages.resize("p", 2 * CHUNK_BYTES)
        assert await get(container, "p") == b"x" * (CHUNK_BYTES + PAGE) + bytes(CHUNK_BYTES - PAGE)
        assert await refusal(container.pages.resize("p", 100)) is BlobFailure.INVALID_RANGE
        await world.check_statistics(container)

    run_blobs(test)


def test_sequence_numbers_are_set_raised_and_compared() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, PAGE, sequence_number=5)
        pages = container.pages
        assert (await pages.set_sequence_number("p", SequenceAction.MAX, 3)).sequence_number == 5
        assert (await pages.set_sequence_number("p", SequenceAction.UPDATE, 3)).sequence_number == 3
        assert (await pages.set_sequence_number("p", SequenceAction.INCREMENT)).sequence_number == 4
        for refused in (SequenceCondition(at_most=3), SequenceCondition(less_than=4), SequenceCondition(equal=5)):
            call = pages.put_pages("p", 0, bytes(PAGE), sequence=refused)
            assert await refusal(call) is BlobFailure.SEQUENCE_NUMBER_CONDITION_NOT_MET
        await pages.put_pages("p", 0, bytes(PAGE), sequence=SequenceCondition(4, 5, 4))
        await pages.set_sequence_number("p", SequenceAction.UPDATE, SEQUENCE_NUMBER_MAX)
        call = pages.set_sequence_number("p", SequenceAction.INCREMENT)
        assert await refusal(call) is BlobFailure.SEQUENCE_NUMBER_INCREMENT_TOO_LARGE

    run_blobs(test)


# --- ranges -----------------------------------------------------------------------------------------------------------


def test_ranges_are_joined_over_chunks_and_given_in_pages() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, 8 * CHUNK_BYTES)
        await put(container, CHUNK_BYTES - PAGE, bytes(2 * PAGE))
        for place in range(3):
            await put(container, (3 + place) * CHUNK_BYTES, bytes(PAGE))
        first = (CHUNK_BYTES - PAGE, CHUNK_BYTES + PAGE)
        rest = [((3 + place) * CHUNK_BYTES, (3 + place) * CHUNK_BYTES + PAGE) for place in range(3)]
        assert await spans(container) == plain(first, *rest)
        _, page = await container.pages.ranges("p", limit=2)
        assert (page.spans, page.next) == ([PageSpan(*first), PageSpan(*rest[0])], rest[1][0])
        assert page.next is not None
        _, page = await container.pages.ranges("p", start=page.next, limit=2)
        assert (page.spans, page.next) == ([PageSpan(*rest[1]), PageSpan(*rest[2])], None)
        _, page = await container.pages.ranges("p", start=CHUNK_BYTES, end=CHUNK_BYTES + PAGE)
        assert page.spans == [PageSpan(CHUNK_BYTES, CHUNK_BYTES + PAGE)]

    run_blobs(test)


def test_a_difference_needs_an_earlier_snapshot_of_the_same_pages() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, PAGE)
        first = Snapshot((await container.snapshot("p")).snapshot)
        second = Snapshot((await container.snapshot("p")).snapshot)
        ranges = container.pages.ranges
        assert await refusal(ranges("p", first, previous=second)) is BlobFailure.PREVIOUS_SNAPSHOT_IS_NEWER
        assert await refusal(ranges("p", previous=Snapshot(1))) is BlobFailure.PREVIOUS_SNAPSHOT_NOT_FOUND
        await create_pages(container, PAGE)
        assert await refusal(ranges("p", previous=second)) is BlobFailure.BLOB_OVERWRITTEN

    run_blobs(test)


def test_what_was_cleared_since_a_snapshot_is_in_the_difference() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, 4 * PAGE)
        first = Snapshot((await container.snapshot("p")).snapshot)
        await put(container, 0, b"d" * 3 * PAGE)
        second = Snapshot((await container.snapshot("p")).snapshot)
        await container.pages.clear_pages("p", PAGE, 2 * PAGE)
        assert await spans(container, previous=first) == [
            (0, PAGE, False),
            (PAGE, 2 * PAGE, True),
            (2 * PAGE, 3 * PAGE, False),
        ]
        assert await spans(container, previous=second) == [(PAGE, 2 * PAGE, True)]
        assert await spans(container, second, first) == plain((0, 3 * PAGE))

    run_blobs(test)


# --- against plain bytes ----------------------------------------------------------------------------------------------

PAGES_MAX = 3 * 64
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, PAGES_MAX - 1), st.integers(1, 70)),
        st.tuples(st.just("clear"), st.integers(0, PAGES_MAX - 1), st.integers(1, 130)),
        st.tuples(st.just("resize"), st.integers(0, PAGES_MAX), st.just(0)),
        st.tuples(st.just("snapshot"), st.just(0), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, 5), st.just(0)),
    ),
    max_size=20,
)


@dataclass
class Model:
    """The blob and its snapshots as bytes, with the pages that have data."""

    data: bytearray = field(default_factory=lambda: bytearray(PAGES_MAX * PAGE))
    with_data: set[int] = field(default_factory=set)
    snapshots: dict[int, tuple[bytes, frozenset[int]]] = field(default_factory=dict)


async def take_step(container: Container, model: Model, step: tuple[str, int, int], number: int) -> None:
    action, first, count = step
    end = min(first + count, len(model.data) // PAGE)
    if action == "write" and first < end:
        written = bytes([number % 255 + 1]) * PAGE * (end - first)
        await container.pages.put_pages("p", first * PAGE, written)
        model.data[first * PAGE : end * PAGE] = written
        model.with_data |= set(range(first, end))
    elif action == "clear" and first < end:
        await container.pages.clear_pages("p", first * PAGE, end * PAGE)
        model.data[first * PAGE : end * PAGE] = bytes((end - first) * PAGE)
        model.with_data -= set(range(first, end))
    elif action == "resize":
        await container.pages.resize("p", first * PAGE)
        model.data = model.data[: first * PAGE].ljust(first * PAGE, b"\x00")
        model.with_data = {page for page in model.with_data if page < first}
    elif action == "snapshot":
        taken = (await container.snapshot("p")).snapshot
        model.snapshots[taken] = bytes(model.data), frozenset(model.with_data)
    elif action == "drop" and model.snapshots:
        moment = sorted(model.snapshots)[first % len(model.snapshots)]
        await container.delete("p", Snapshot(moment))
        del model.snapshots[moment]


def listed(found: Sequence[PageSpan]) -> set[int]:
    return {page for span in found for page in range(span.start // PAGE, span.end // PAGE)}


@WEAK
@given(STEPS)
def test_page_blobs_and_their_snapshots_are_what_was_written(steps: list[tuple[str, int, int]]) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_pages(container, PAGES_MAX * PAGE)
        model = Model()
        for number, step in enumerate(steps):
            await take_step(container, model, step, number)
        states = {**model.snapshots, 0: (bytes(model.data), frozenset(model.with_data))}
        for moment, (data, with_data) in states.items():
            which = Snapshot(moment) if moment else CURRENT
            assert await get(container, "p", which) == data
            _, page = await container.pages.ranges("p", which)
            assert listed(page.spans) == with_data
        for moment, (earlier, _) in model.snapshots.items():
            _, page = await container.pages.ranges("p", previous=Snapshot(moment))
            length = min(len(earlier), len(model.data))
            changed = {
                at // PAGE for at in range(0, length, PAGE) if earlier[at : at + PAGE] != model.data[at : at + PAGE]
            }
            assert changed <= listed(page.spans)
        await world.check_statistics(container)

    run_blobs(test)


# --- what is left -----------------------------------------------------------------------------------------------------


def test_a_blob_that_is_deleted_with_its_snapshots_is_only_garbage() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        record = await create_pages(container, 4 * CHUNK_BYTES)
        await put(container, 0, b"1" * 4 * CHUNK_BYTES)
        taken = await container.snapshot("p")
        await put(container, CHUNK_BYTES, b"2" * CHUNK_BYTES)
        assert len(await world.entries(container, PAGES)) == 5
        point, content_id = point_of("p"), record.content.content_id
        assert await remove_unseen_pages(container.space, point, content_id, [0, 1], newest=1) == 0
        await container.delete("p", Snapshot(taken.snapshot))
        assert await remove_unseen_pages(container.space, point, content_id, [1], newest=1) == 1
        assert await get(container, "p") == b"1" * CHUNK_BYTES + b"2" * CHUNK_BYTES + b"1" * 2 * CHUNK_BYTES
        await container.delete("p")
        assert await remove_unseen_pages(container.space, point, content_id, [], newest=1) == 4
        assert await world.entries(container, PAGES) == []
        assert await world.entries(container, PAGE_MAPS) == []
        await world.check_statistics(container)

    run_blobs(test)
