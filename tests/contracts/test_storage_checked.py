"""`CheckedEngine` notices callers and engines that break the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from asterism.storage.checked import CheckedEngine, ContractViolation
from asterism.storage.contract import KEY_BYTES_MAX, Add, Batch, Fence, ScanPage, Span
from asterism.storage.lmdb import LmdbEngine
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

ONE = PartitionNumber(1)
EPOCH = Epoch(1)


class LyingEngine:
    """An engine with replaced answers to some calls."""

    def __init__(self, engine: LmdbEngine) -> None:
        self._engine = engine
        self.lies: dict[str, Any] = {}
        # Called when a fence is set, before the caller hears of it.
        self.after_fence: Callable[[], Awaitable[Any]] | None = None

    def __getattr__(self, name: str) -> Any:
        async def lie(*_: object, **__: object) -> Any:
            return self.lies[name]

        return lie if name in self.lies else getattr(self._engine, name)

    async def set_fence(self, partition: PartitionNumber, fence: Fence, **options: Any) -> Lsn:
        lsn = await self._engine.set_fence(partition, fence, **options)
        if self.after_fence is not None:
            await self.after_fence()
        return lsn


@pytest.fixture
async def liar(tmp_path: Path) -> AsyncIterator[LyingEngine]:
    engine = LmdbEngine.open(tmp_path, durable=False)
    await engine.create_partition(ONE, Fence(EPOCH))
    yield LyingEngine(engine)
    await engine.close()


@pytest.fixture
def checked(liar: LyingEngine) -> CheckedEngine:
    return CheckedEngine(liar)


@pytest.mark.parametrize(
    "batch",
    [
        Batch(puts=[(b"k" * (KEY_BYTES_MAX + 1), b"")]),
        Batch(stamped_puts=[(b"k" * (KEY_BYTES_MAX - 7), b"", b"")]),
        Batch(deletes=[b"k"], puts=[(b"k", b"")]),
        Batch(versioned_puts=[(b"k", b"")], adds=[Add(b"k", (1,))]),
        Batch(puts=[(b"k", bytearray(b"v"))]),  # type: ignore[list-item]  # the offence
    ],
    ids=["long key", "long stamped key", "deleted and put", "put and added to", "not bytes"],
)
async def test_an_invalid_batch_is_not_delegated(checked: CheckedEngine, batch: Batch) -> None:
    with pytest.raises(ContractViolation):
        await checked.apply(ONE, EPOCH, batch)
    assert (await checked.read_fence(ONE))[1] == 0


@pytest.mark.parametrize("lsn", [1, 3], ids=["repeated", "with a gap"])
async def test_an_lsn_that_is_not_the_next_is_noticed(checked: CheckedEngine, liar: LyingEngine, lsn: int) -> None:
    await checked.apply(ONE, EPOCH, Batch())
    liar.lies["apply"] = Lsn(lsn)
    with pytest.raises(ContractViolation):
        await checked.apply(ONE, EPOCH, Batch())


async def test_batches_that_end_while_a_fence_is_still_being_set_leave_no_gap(
    checked: CheckedEngine, liar: LyingEngine
) -> None:
    liar.after_fence = lambda: checked.apply(ONE, Epoch(2), Batch())
    assert await checked.set_fence(ONE, Fence(Epoch(2))) == 0
    assert await checked.apply(ONE, Epoch(2), Batch()) == 2
    liar.lies["apply"] = Lsn(4)
    with pytest.raises(ContractViolation):
        await checked.apply(ONE, Epoch(2), Batch())


@pytest.mark.parametrize(
    "page",
    [
        ScanPage([(b"c", b""), (b"b", b"")], more=False),
        ScanPage([(b"b", b""), (b"b", b"")], more=False),
        ScanPage([(b"z", b"")], more=False),
        ScanPage([(b"b", b""), (b"c", b""), (b"d", b"")], more=False),
        ScanPage([(b"b", b"x" * 50), (b"c", b"")], more=False),
        ScanPage([], more=True),
        ScanPage([(b"b", b"")], more=True),
    ],
    ids=["reversed", "twice", "outside", "too long", "too large", "more of nothing", "more for no reason"],
)
async def test_an_invalid_page_is_noticed(checked: CheckedEngine, liar: LyingEngine, page: ScanPage) -> None:
    liar.lies["scan"] = page
    with pytest.raises(ContractViolation):
        await checked.scan(ONE, EPOCH, Span(b"a", b"x"), limit=2, bytes_max=50)


@pytest.mark.parametrize("fence", [Fence(EPOCH, sealed=True), Fence(Epoch(2))], ids=["sealed", "another epoch"])
async def test_a_call_that_passes_its_fence_is_noticed(checked: CheckedEngine, liar: LyingEngine, fence: Fence) -> None:
    await checked.set_fence(ONE, fence)
    liar.lies |= {"apply": Lsn(1), "read": (Lsn(0), []), "scan": ScanPage([], more=False)}
    for call in (
        checked.apply(ONE, EPOCH, Batch()),
        checked.read(ONE, EPOCH, []),
        checked.scan(ONE, EPOCH, Span()),
    ):
        with pytest.raises(ContractViolation):
            await call


async def test_a_read_that_misses_an_acknowledged_batch_is_noticed(checked: CheckedEngine, liar: LyingEngine) -> None:
    await checked.apply(ONE, EPOCH, Batch())
    liar.lies["read"] = (Lsn(0), [])
    with pytest.raises(ContractViolation):
        await checked.read(ONE, EPOCH, [])


async def test_copying_into_a_partition_in_use_is_noticed(checked: CheckedEngine) -> None:
    await checked.set_fence(ONE, Fence(EPOCH))
    with pytest.raises(ContractViolation):
        await checked.write_copied(ONE, EPOCH, puts=[(b"a", b"")])


async def test_a_snapshot_left_open_and_one_used_after_closing_are_noticed(tmp_path: Path) -> None:
    engine = CheckedEngine(LmdbEngine.open(tmp_path / "own", durable=False))
    await engine.create_partition(ONE, Fence(EPOCH))
    closed = await engine.snapshot(ONE, EPOCH)
    await closed.close()
    with pytest.raises(ContractViolation):
        await closed.read([b"a"])
    await engine.snapshot(ONE, EPOCH)
    with pytest.raises(ContractViolation):
        await engine.close()
