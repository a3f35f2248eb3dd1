"""Stored procedures, triggers and user-defined functions as resources of their container. What runs them is elsewhere:
`procedures.py`, `triggers.py` and `script_functions.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from asterism.apis.http import Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context, check_if_match, is_not_modified, json_object
from asterism.apis.nosql.headers import is_true, metadata_headers
from asterism.apis.nosql.paging import list_page
from asterism.apis.nosql.queries import matching
from asterism.apis.nosql.quotas import quota_of, sizes_of
from asterism.documents.container import Container
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.keyspaces.principals import Principals
from asterism.keyspaces.scripts_catalog import ScriptRecord, ScriptsCatalog
from asterism.scripts.runtime import ScriptScope
from asterism.throughput.charge import METADATA, METADATA_CHANGE
from asterism.values.item import validate_resource_name
from asterism.values.json_text import dumps
from asterism.values.resource_ids import from_text, self_link_of_child, self_link_of_collection, to_text

_SYSTEM_PROPERTIES: Final = frozenset({"id", "_rid", "_self", "_etag", "_ts"})
_TRIGGER_KINDS: Final = frozenset({"pre", "post"})
_TRIGGER_OPERATIONS: Final = frozenset({"all", "create", "update", "delete", "replace", "upsert"})


async def scope_of_scripts(context: Context, container: Container) -> ScriptScope:
    """The links by which a container's scripts may call it, and its quotas at the beginning of a run."""
    record = container.record
    database = context.store.catalog.databases[record.database_rid]
    quota = quota_of(context, container, await sizes_of(context, container))
    return ScriptScope(
        self_link_of_collection(record.rid),
        f"dbs/{database.name}/colls/{record.name}",
        quota_usage=quota.usage,
        quota_max=quota.maximum,
    )


def find_script(scripts: Principals, container: Container, name_or_rid: str) -> ScriptRecord | None:
    found = scripts.find(container.record.rid, name_or_rid)
    if found is None:
        rid = from_text(name_or_rid)
        found = None if rid is None or not rid.startswith(container.record.rid) else scripts.get(rid)
    return found


def _check_no_more(told: Mapping[str, object]) -> None:
    """Procedures and functions have a body and no more that is looked at."""


def _check_trigger(told: Mapping[str, object]) -> None:
    for name, known in (("triggerType", _TRIGGER_KINDS), ("triggerOperation", _TRIGGER_OPERATIONS)):
        if str(told.get(name)).lower() not in known:
            raise MalformedRequest(reason=f"A trigger needs '{name}', one of {', '.join(sorted(known))}.")


@dataclass(frozen=True, slots=True)
class ScriptFeed:
    """The handlers of one of the three feeds. `segment` is its place in paths, `envelope` its name in answers."""

    kind: str
    segment: str
    envelope: str
    choose: Callable[[ScriptsCatalog], Principals]
    check: Callable[[Mapping[str, object]], None] = _check_no_more

    async def post_scripts(self, context: Context, request: Request, parts: list[str]) -> Response:
        told = request.headers
        if is_true(told.get(headers.IS_QUERY)):
            return await self.list_scripts(context, request, parts)
        container, scripts = self._at(context, request, parts)
        name, properties = self._told(context, request)
        known = scripts.find(container.record.rid, name) if is_true(told.get(headers.IS_UPSERT)) else None
        if known is not None:
            check_if_match(told, known.etag)
            return self._answer(200, await scripts.replace(known, name, properties, now=context.now()))
        return self._answer(201, await scripts.create(container.record.rid, name, properties, now=context.now()))

    async def list_scripts(self, context: Context, request: Request, parts: list[str]) -> Response:
        container, scripts = self._at(context, request, parts)
        entries = [(record.name, self._json(record)) for record in scripts.owned_by(container.record.rid)]
        return list_page(
            request.headers,
            await matching(context, request, entries),
            rid=to_text(container.record.rid),
            name=self.envelope,
            more_headers=metadata_headers(charge=METADATA),
        )

    async def read_script(self, context: Context, request: Request, parts: list[str]) -> Response:
        _, _, record = self.script_at(context, request, parts)
        if is_not_modified(request.headers, record.etag):
            return Response(304, metadata_headers(charge=METADATA, etag=record.etag))
        return self._answer(200, record, charge=METADATA)

    async def replace_script(self, context: Context, request: Request, parts: list[str]) -> Response:
        _, scripts, record = self.script_at(context, request, parts)
        check_if_match(request.headers, record.etag)
        name, properties = self._told(context, request)
        return self._answer(200, await scripts.replace(record, name, properties, now=context.now()))

    async def delete_script(self, context: Context, request: Request, parts: list[str]) -> Response:
        _, scripts, record = self.script_at(context, request, parts)
        check_if_match(request.headers, record.etag)
        await scripts.delete(record)
        return Response(204, metadata_headers(charge=METADATA_CHANGE))

    def script_at(
        self, context: Context, request: Request, parts: list[str]
    ) -> tuple[Container, Principals, ScriptRecord]:
        """The script that a path names, by name or by resource id."""
        container, scripts = self._at(context, request, parts)
        found = find_script(scripts, container, parts[5])
        if found is None:
            raise ResourceNotFound(kind=self.kind, name=parts[5])
        return container, scripts, found

    def _at(self, context: Context, request: Request, parts: list[str]) -> tuple[Container, Principals]:
        return context.items_container(request.headers, parts), self.choose(context.store.catalog.scripts)

    def _told(self, context: Context, request: Request) -> tuple[str, dict[str, object]]:
        told = json_object(request, context)
        name = validate_resource_name(told.get("id"))
        if not isinstance(told.get("body"), str):
            raise MalformedRequest(reason=f"A {self.kind} needs its JavaScript as 'body', a string.")
        self.check(told)
        return name, {key: value for key, value in told.items() if key not in _SYSTEM_PROPERTIES}

    def _json(self, record: ScriptRecord) -> dict[str, object]:
        return {
            **record.properties,
            "id": record.name,
            "_rid": to_text(record.rid),
            "_self": self_link_of_child(record.rid, segment=self.segment),
            "_etag": record.etag,
            "_ts": record.changed_at,
        }

    def _answer(self, status: int, record: ScriptRecord, *, charge: float = METADATA_CHANGE) -> Response:
        return Response(status, metadata_headers(charge=charge, etag=record.etag), dumps(self._json(record)))


PROCEDURES: Final = ScriptFeed(
    "stored procedure", "sprocs", "StoredProcedures", lambda catalog: catalog.stored_procedures
)
TRIGGERS: Final = ScriptFeed("trigger", "triggers", "Triggers", lambda catalog: catalog.triggers, _check_trigger)
FUNCTIONS: Final = ScriptFeed(
    "user-defined function", "udfs", "UserDefinedFunctions", lambda catalog: catalog.functions
)
