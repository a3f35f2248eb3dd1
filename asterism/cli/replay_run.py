"""The requests of a replay, sent to a scratch container at their times, and the server's replies as figures."""

from __future__ import annotations

import asyncio
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from asterism.advisor.replay_calls import Call, CarriedOut, Client
from asterism.advisor.replay_figures import Measured, Reply
from asterism.advisor.replay_schedule import Schedule, Unit
from asterism.cli.async_data_client import AsyncDataClient
from asterism.cli.data_client import DataReply
from asterism.cli.failure import CommandFailed
from asterism.cli.scratch_containers import ScratchContainer
from asterism.cli.server_address import ServerAddress
from asterism.partitioning.effective_key import from_text
from asterism.throughput.charge import MISS

# Requests under way; a fan-out takes a connection for each partition.
CONNECTIONS: Final = 32
UNITS_UNDER_WAY: Final = 16

_RANGE_ID: Final = "x-ms-documentdb-partitionkeyrangeid"
_KEY: Final = "x-ms-documentdb-partitionkey"
_CONTINUATION: Final = "x-ms-continuation"
_ITEM_COUNT: Final = "x-ms-item-count"
# A 404 with this is about the container, not about an item.
_OWNER_GONE: Final = "1003"
_METRICS: Final = "x-ms-documentdb-query-metrics"
_LOADED: Final = re.compile(r"retrievedDocumentCount=(\d+)")
_QUERY: Final = {"x-ms-documentdb-isquery": "True", "x-ms-documentdb-populatequerymetrics": "True"}
_MINIMAL: Final = {"prefer": "return=minimal"}
_BATCH: Final = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", **_MINIMAL}


class ReplayRun:
    """One replay into one container."""

    def __init__(
        self,
        container: ScratchContainer,
        client: Client,
        schedule: Schedule,
        *,
        is_paced: bool = True,
        on_unit: Callable[[Unit, Sequence[Reply]], None] = lambda *_: None,
    ) -> None:
        """`is_paced`: at their times, or else as fast as the server answers, where nothing is throttled. `on_unit` is
        called with every unit that is done, and its replies."""
        self._container = container
        self._client = client
        self._schedule = schedule
        self._is_paced = is_paced
        self.on_unit = on_unit
        # By the places on the hash line where they begin.
        self._range_starts: list[bytes] = []
        self._range_ids: list[str] = []
        # The last task about each item: the next waits for it, so that a read finds what was written before.
        self._last: dict[str, asyncio.Task[None]] = {}
        self._measured = Measured(container.database.partitions)

    def run(self) -> Measured:
        """Send everything; return the figures. A container that is deleted meanwhile is a CommandFailed."""
        before = self._container.spent_by_range()
        asyncio.run(self._run())
        after = self._container.spent_by_range()
        measured = self._measured
        measured.by_range = {range_id: after[range_id] - before.get(range_id, 0.0) for range_id in after}
        return measured

    async def _run(self) -> None:
        server = self._container.database.server
        address = ServerAddress.of(server.endpoint, server.key, insecure=server.insecure)
        self._http = AsyncDataClient(address, connections=CONNECTIONS)
        try:
            await self._read_ranges()
            started = time.monotonic()
            free = asyncio.Semaphore(UNITS_UNDER_WAY)
            async with asyncio.TaskGroup() as group:
                for unit, due in zip(self._schedule.units, self._schedule.due_seconds, strict=True):
                    await self._wait_until(started + due)
                    await free.acquire()
                    self._begin(group, unit, free)
        except* CommandFailed as failures:
            raise failures.exceptions[0] from None
        finally:
            await self._http.close()

    async def _wait_until(self, due: float) -> None:
        if not self._is_paced:
            return
        early_seconds = due - time.monotonic()
        if early_seconds > 0:
            await asyncio.sleep(early_seconds)
        self._measured.late_seconds = max(self._measured.late_seconds, -early_seconds)

    def _begin(self, group: asyncio.TaskGroup, unit: Unit, free: asyncio.Semaphore) -> None:
        # Decided in the order of the capture, sent maybe a little later.
        is_batch = unit[0].batch is not None
        carried = self._client.carry_out_batch(unit) if is_batch else self._client.carry_out(unit[0])
        names = {request.item_id for request in unit if request.item_id is not None}
        waits_for = [self._last[name] for name in names if name in self._last]
        task = group.create_task(self._send(unit, carried, waits_for))
        task.add_done_callback(lambda _: free.release())
        self._last.update(dict.fromkeys(names, task))

    async def _send(self, unit: Unit, carried: CarriedOut, waits_for: Sequence[asyncio.Task[None]]) -> None:
        if waits_for:
            await asyncio.wait(waits_for)
        replies: list[Reply] = []
        for call in carried.calls:
            replies += await self._call(call)
            if any(reply.status >= 400 for reply in replies):
                break
        measured = self._measured
        if carried.calls:
            measured.add(unit, replies)
        measured.broken_batches += carried.breaks_batch
        measured.moved_items += carried.moves_item
        self.on_unit(unit, replies)

    # --- one call ---------------------------------------------------------------------------------------------------

    async def _call(self, call: Call) -> list[Reply]:
        match call.kind:
            case "query" | "feed" if call.fans_out:
                calls = [self._page(call, {_RANGE_ID: range_id}) for range_id in self._range_ids]
                return [await reply for reply in asyncio.as_completed(calls)]
            case "query" | "feed":
                return await self._pages(call)
            case "create" | "upsert":
                upsert = {"x-ms-documentdb-is-upsert": "True"} if call.kind == "upsert" else {}
                return [await self._item("POST", call, call.body, upsert)]
            case "batch":
                return [await self._item("POST", call, call.body, _BATCH)]
            case "read":
                return self._by_partition(call, await self._item("GET", call, None, {}))
            case "replace":
                return [await self._item("PUT", call, call.body, {})]
            case "patch":
                return self._by_partition(call, await self._item("PATCH", call, {"operations": call.body}, {}))
            case _:
                return self._by_partition(call, await self._item("DELETE", call, None, {}))

    async def _item(self, verb: str, call: Call, body: object, more: Mapping[str, str]) -> Reply:
        """Send a request about one item, or a batch."""
        link = self._container.link if verb == "POST" else f"{self._container.link}/docs/{call.item_id}"
        path = f"{link}/docs" if verb == "POST" else link
        headers = {_KEY: call.key_text, **_MINIMAL, **more}
        reply = await self._http.ask(verb, path, body, type_="docs", link=link, headers=headers)
        return self._noted(reply, reply.headers.get("x-ms-session-token", "").partition(":")[0] or None)

    def _by_partition(self, call: Call, reply: Reply) -> list[Reply]:
        """Divide the charge of a search as the server does: a look-up for each key, the rest where the item is."""
        if not call.searched or reply.status >= 400:
            return [reply]
        asked = [self._range_ids[bisect_right(self._range_starts, point) - 1] for point in call.searched]
        if reply.range_id in asked:
            asked.remove(reply.range_id)
        rest = round(reply.charge - MISS * len(asked), 2)
        return [replace(reply, charge=rest), *(Reply(reply.status, MISS, range_id) for range_id in asked)]

    async def _pages(self, call: Call) -> list[Reply]:
        """Read one logical partition, or the few that the filter names, up to the number of items of the page."""
        replies: list[Reply] = []
        wanted, headers = call.page_items, {} if call.key is None else {_KEY: call.key_text}
        while True:
            reply = await self._ask_page(call, {**headers, "x-ms-max-item-count": str(wanted)})
            replies.append(self._noted(reply, reply.headers.get(_RANGE_ID)))
            continuation = reply.headers.get(_CONTINUATION)
            wanted -= replies[-1].results
            if reply.status >= 400 or continuation is None or wanted <= 0:
                return replies
            headers[_CONTINUATION] = continuation

    async def _page(self, call: Call, headers: Mapping[str, str]) -> Reply:
        reply = await self._ask_page(call, {"x-ms-max-item-count": str(call.page_items), **headers})
        return self._noted(reply, reply.headers.get(_RANGE_ID))

    async def _ask_page(self, call: Call, headers: Mapping[str, str]) -> DataReply:
        link = self._container.link
        verb, more = ("GET", headers) if call.kind == "feed" else ("POST", {**_QUERY, **headers})
        return await self._http.ask(verb, f"{link}/docs", call.body, type_="docs", link=link, headers=more)

    def _noted(self, reply: DataReply, range_id: str | None) -> Reply:
        if reply.status == 404 and reply.headers.get("x-ms-substatus") == _OWNER_GONE:
            raise CommandFailed(
                f"the scratch container {self._container.database.name}/{self._container.name} was deleted during the "
                "replay; start it again"
            )
        charge = float(reply.headers.get("x-ms-request-charge", 0.0))
        found = _LOADED.search(reply.headers.get(_METRICS, ""))
        loaded = 0 if found is None else int(found.group(1))
        return Reply(reply.status, charge, range_id, int(reply.headers.get(_ITEM_COUNT, 0)), loaded)

    async def _read_ranges(self) -> None:
        link = self._container.link
        reply = await self._http.ask("GET", f"{link}/pkranges", type_="pkranges", link=link)
        if reply.status >= 400:
            raise CommandFailed(reply.message)
        found = sorted((from_text(each["minInclusive"]), str(each["id"])) for each in reply.body["PartitionKeyRanges"])
        self._range_starts, self._range_ids = [start for start, _ in found], [range_id for _, range_id in found]
