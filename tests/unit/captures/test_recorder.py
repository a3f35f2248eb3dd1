"""A recorder keeps a sample, whole requests at a time, in bounded memory."""

from __future__ import annotations

from dataclasses import replace

from asterism.advisor.captured_request import CapturedRequest, CaptureHeader, read_capture
from asterism.advisor.value_digests import digest
from asterism.apis.captures.recorder import PLAIN_TEXT_CHARACTERS_MAX, Recorder
from asterism.keyspaces.catalog.capture_order import CaptureOrder

ORDER = CaptureOrder(
    id="0011223344556677",
    started_at=100.0,
    ends_at=200.0,
    sampling=0.25,
    bytes_max=10_000,
    keeps_values=False,
    salt=b"0123456789abcdef",
)
READ = CapturedRequest(at=101.0, operation="read", item_id="o-17", key=("ada",))


def make_recorder(order: CaptureOrder = ORDER, *, waiting_bytes_max: int = 100_000) -> Recorder:
    return Recorder(
        order,
        database="shop",
        container="orders",
        part="p",
        waiting_bytes_max=waiting_bytes_max,
    )


def add(recorder: Recorder, *requests: CapturedRequest, bytes_held: int = 0) -> None:
    recorder.add(lambda: requests, bytes_held=bytes_held)


def kept(recorder: Recorder) -> list[object]:
    return list(read_capture(recorder.take()))


async def test_values_are_kept_as_digests() -> None:
    recorder = make_recorder()
    add(recorder, READ)
    ada, item_id = digest("ada", salt=ORDER.salt), digest("o-17", salt=ORDER.salt)
    assert kept(recorder) == [replace(READ, item_id=item_id, key=(ada,))]


async def test_plain_values_are_kept_as_they_are_unless_they_are_long() -> None:
    long = "x" * (PLAIN_TEXT_CHARACTERS_MAX + 1)
    recorder = make_recorder(replace(ORDER, keeps_values=True))
    add(recorder, replace(READ, values={"/short": long[1:], "/long": long, "/n": 5}))
    (found,) = kept(recorder)
    assert isinstance(found, CapturedRequest)
    assert found.key == ("ada",)
    assert found.values == {"/short": long[1:], "/long": digest(long, salt=ORDER.salt), "/n": 5}


def test_the_first_line_says_what_the_capture_is() -> None:
    (header,) = read_capture([make_recorder().first_line])
    assert header == CaptureHeader("shop", "orders", started=100.0, sampling=0.25, values="digests")


async def test_requests_that_find_no_room_are_dropped_and_counted() -> None:
    recorder = make_recorder(waiting_bytes_max=20_000)
    add(recorder, READ, bytes_held=10_000)
    add(recorder, READ, bytes_held=10_000)
    add(recorder, READ)
    header = CaptureHeader("shop", "orders", started=100.0, sampling=0.25, values="digests", dropped=1)
    assert kept(recorder)[2:] == [header]
    add(recorder, READ, bytes_held=10_000)
    assert len(kept(recorder)) == 1


async def test_a_request_that_cannot_be_described_is_dropped_alone() -> None:
    recorder = make_recorder()
    add(recorder, READ)
    recorder.add(lambda: [replace(READ, no_such_member=1)], bytes_held=0)  # type: ignore[call-arg]  # a failure
    add(recorder, READ, READ)
    found = kept(recorder)
    assert [type(entry) for entry in found] == [CapturedRequest] * 3 + [CaptureHeader]


async def test_a_closed_recorder_takes_nothing_more() -> None:
    recorder = make_recorder()
    recorder.close()
    add(recorder, READ)
    (header,) = kept(recorder)
    assert isinstance(header, CaptureHeader)
    assert header.dropped == 1


def test_batches_have_names_of_their_own() -> None:
    recorder = make_recorder()
    assert [recorder.new_batch_name() for _ in range(2)] == ["p.1", "p.2"]
