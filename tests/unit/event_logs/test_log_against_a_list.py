"""A log does what a list does: whatever is appended, read and removed, in whatever order (E2, E3, E4, E6)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import StoredDamage
from asterism.models.event_logs.events import FromTime
from asterism.models.event_logs.layout import NewEvent, pack_chunk, unpack_events, unpack_head
from tests.support.event_logs import append, open_hubs
from tests.support.virtual_time import run_virtual

RETENTION_MS = 60_000

appends = st.tuples(st.just("append"), st.lists(st.binary(max_size=20), min_size=1, max_size=8))
reads = st.tuples(st.just("read"), st.tuples(st.integers(0, 60), st.integers(1, 10), st.integers(1, 60)))
waits = st.tuples(st.just("wait"), st.integers(1, 50))
removals = st.tuples(st.just("remove"), st.none())
times = st.tuples(st.just("find"), st.integers(-100, 10))
jumps = st.tuples(st.just("jump"), st.integers(-30, 30))


@dataclass
class Stored:
    """The events of the list, with their times."""

    events: list[tuple[bytes, int]] = field(default_factory=list)
    begin: int = 0


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(appends, appends, reads, waits, removals, times, jumps), max_size=40),
    st.sampled_from([0, 2_000, 2**20]),
    st.sampled_from([None, 150]),
)
def test_a_log_does_what_a_list_does(steps: list[tuple[str, object]], cache_bytes: int, kept_bytes: int | None) -> None:
    async def main() -> None:
        async with open_hubs(cache_bytes_max=cache_bytes) as world:
            hub = await world.hub(partitions=1, retention_ms=RETENTION_MS, retention_bytes=kept_bytes)
            log, model = hub.log(0), Stored()
            clock = world.store.services
            for name, argument in steps:
                match name, argument:
                    case "append", list(contents):
                        appended = await append(log, *contents)
                        assert appended.first_sequence == len(model.events)
                        assert appended.enqueued_ms >= max([0, *(at for _, at in model.events[-1:])])
                        model.events += [(content, appended.enqueued_ms) for content in contents]
                    case "read", (int(start), int(events_max), int(bytes_max)):
                        found = await log.read(start, events_max=events_max, bytes_max=bytes_max)
                        first = max(start, model.begin)
                        expected = model.events[first : first + len(found)]
                        assert [(event.content, event.enqueued_ms) for event in found] == expected
                        assert [event.sequence for event in found] == list(range(first, first + len(found)))
                        assert bool(found) == (first < len(model.events))
                        assert sum(len(event.content) for event in found[:-1]) < bytes_max
                    case "wait", int(seconds):
                        await asyncio.sleep(seconds)
                    case "jump", int(seconds):
                        world.wall.seconds += seconds
                    case "find", int(seconds):
                        moment = clock.now_ms() + 1000 * seconds
                        later = [place for place, (_, at) in enumerate(model.events) if at >= moment]
                        place = await log.find(FromTime(moment, is_inclusive=True))
                        assert place == max(model.begin, *later[:1], *([] if later else [len(model.events)]))
                    case _:
                        await world.upkeep.remove_from(hub, log)
                        begin = (await log.properties()).begin_sequence
                        assert begin >= model.begin
                        oldest_ms = clock.now_ms() - RETENTION_MS
                        assert all(at >= oldest_ms for _, at in model.events[begin:])
                        removed = model.events[model.begin : begin]
                        assert kept_bytes is not None or all(at < oldest_ms for _, at in removed)
                        model.begin = begin
            await world.check_entries(hub)

    run_virtual(main())


new_events = st.lists(
    st.builds(NewEvent, st.binary(max_size=50), st.one_of(st.none(), st.binary(max_size=20))), max_size=20
)


@given(new_events, st.integers(0, 2**60), st.integers(0, 2**60))
def test_a_chunk_is_the_same_after_it_was_stored(events: list[NewEvent], enqueued_ms: int, before: int) -> None:
    value = pack_chunk(events, enqueued_ms=enqueued_ms, bytes_before=before)
    assert unpack_events(value) == events
    assert unpack_head(7, value) == (7, len(events), enqueued_ms, before)


@given(new_events, st.data())
def test_a_chunk_that_was_cut_is_refused_as_damage(events: list[NewEvent], data: st.DataObject) -> None:
    value = pack_chunk(events, enqueued_ms=1, bytes_before=2)
    cut = value[: data.draw(st.integers(0, len(value) - 1))]
    with pytest.raises(StoredDamage):
        unpack_events(cut)
