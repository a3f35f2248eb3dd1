"""Operations on a dictionary: the documents floor's contract with scripts, small enough to read at once."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from asterism.scripts.operations import (
    FeedOptions,
    FeedOutcome,
    ItemOutcome,
    ItemReference,
    OperationRefused,
    ScriptQuery,
    WriteOptions,
)
from asterism.scripts.results import ScriptFailed, ScriptSucceeded, TriggerSucceeded
from asterism.scripts.runtime import ScriptRuntime, ScriptScope, TriggerKind

SCOPE = ScriptScope("dbs/ZGI=/colls/ZGJjb2w=/", "dbs/shop/colls/orders", "documentsSize=1", "documentsSize=20")


class DictOperations:
    def __init__(self, *items: Mapping[str, object]) -> None:
        self.items: dict[str, dict[str, object]] = {}
        self.calls: list[tuple[str, object]] = []
        self.rollback_count = 0
        self._version = 0
        # Called before each operation, for tests of time.
        self.before: Callable[[], None] = lambda: None
        for item in items:
            self._store(dict(item))
        self._committed = dict(self.items)

    async def create(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused:
        self._note("create", options)
        if body.get("id") in self.items:
            return OperationRefused(409, "An item with this id exists already.")
        if not isinstance(body.get("id"), str):
            return OperationRefused(400, "The id is missing.")
        if body.get("pk", "p") != "p":
            return OperationRefused(400, "The partition key is another one.")
        return ItemOutcome(201, self._store(body))

    async def create_many(self, bodies: Sequence[dict[str, object]]) -> Sequence[ItemOutcome] | None:
        """Decline: a dictionary has no faster way."""
        return None

    async def upsert(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused:
        self._note("upsert", options)
        status = 200 if body["id"] in self.items else 201
        return ItemOutcome(status, self._store(body))

    async def replace(
        self, reference: ItemReference, body: dict[str, object], options: WriteOptions
    ) -> ItemOutcome | OperationRefused:
        self._note("replace", options)
        found = self._find(reference)
        if found is None:
            return OperationRefused(404, "The item does not exist.")
        if options.etag is not None and options.etag != found["_etag"]:
            return OperationRefused(412, "The etag is another one.")
        return ItemOutcome(200, self._store(body))

    async def read(self, reference: ItemReference, options: WriteOptions) -> ItemOutcome | OperationRefused:
        self._note("read", reference)
        found = self._find(reference)
        if found is None:
            return OperationRefused(404, "The item does not exist.")
        if options.if_none_match == found["_etag"]:
            return ItemOutcome(304, None)
        return ItemOutcome(200, json.dumps(found).encode())

    async def delete(self, reference: ItemReference, options: WriteOptions) -> ItemOutcome | OperationRefused:
        self._note("delete", reference)
        found = self._find(reference)
        if found is None:
            return OperationRefused(404, "The item does not exist.")
        del self.items[str(found["id"])]
        return ItemOutcome(204, None)

    async def query(self, query: ScriptQuery, options: FeedOptions) -> FeedOutcome | OperationRefused:
        self._note("query", query)
        if not query.text.startswith("SELECT"):
            return OperationRefused(400, "Syntax error.")
        return self._page(options)

    async def read_feed(self, options: FeedOptions) -> FeedOutcome | OperationRefused:
        self._note("feed", options)
        return self._page(options)

    def roll_back(self) -> None:
        self.rollback_count += 1
        self.items = dict(self._committed)

    def _note(self, name: str, detail: object) -> None:
        self.before()
        self.calls.append((name, detail))

    def _find(self, reference: ItemReference) -> dict[str, object] | None:
        if reference.item_id is not None:
            return self.items.get(reference.item_id)
        matches = [item for item in self.items.values() if item["_rid"] == reference.resource_id]
        return matches[0] if matches else None

    def _store(self, body: dict[str, object]) -> bytes:
        self._version += 1
        rid = f"rid-{body['id']}"
        system = {"_rid": rid, "_self": f"{SCOPE.self_link}docs/{rid}/", "_etag": f'"{self._version}"'}
        self.items[str(body["id"])] = {**body, **system}
        return json.dumps(self.items[str(body["id"])]).encode()

    def _page(self, options: FeedOptions) -> FeedOutcome:
        start = int(options.continuation or 0)
        end = start + options.page_size
        found = list(self.items.values())
        texts = [json.dumps(item).encode() for item in found[start:end]]
        return FeedOutcome(texts, str(end) if end < len(found) else None)


class ScriptBench:
    """A runtime and operations; scripts are written as the inside of a function."""

    def __init__(self, runtime: ScriptRuntime) -> None:
        self.runtime = runtime
        self.operations = DictOperations()

    async def run(self, body: str, *parameters: object, is_logging: bool = False) -> ScriptSucceeded | ScriptFailed:
        return await self.runtime.run_stored_procedure(
            body, parameters, operations=self.operations, scope=SCOPE, is_logging=is_logging
        )

    async def answer(self, inside: str, *parameters: object) -> Any:
        """Return the response of a script that succeeds; it may use `reply`, `collection` and `link`."""
        result = await self.run(script(inside), *parameters)
        assert isinstance(result, ScriptSucceeded), result
        return json.loads(result.body)

    async def failure(self, inside: str, *parameters: object) -> ScriptFailed:
        result = await self.run(script(inside), *parameters)
        assert isinstance(result, ScriptFailed), result
        return result

    async def trigger(
        self, body: str, kind: TriggerKind, request_body: object, response_body: object = None
    ) -> TriggerSucceeded | ScriptFailed:
        return await self.runtime.run_trigger(
            body,
            kind=kind,
            operation="Create",
            request_body=request_body,
            response_body=response_body,
            operations=self.operations,
            scope=SCOPE,
        )


def script(inside: str) -> str:
    return f"""function (first, second) {{
        var collection = getContext().getCollection(), link = collection.getSelfLink();
        function reply(value) {{ getContext().getResponse().setBody(value); }}
        {inside}
    }}"""


def kill_hosts() -> None:
    """Kill every script host of this process, as a crash of the engine would."""
    for child in psutil.Process().children():
        if "asterism.scripts.host" in child.cmdline():
            os.kill(child.pid, signal.SIGSEGV)
