"""Stored procedures, triggers and user-defined functions as resources of their container.

They are run by `procedures.py`, `triggers.py` and `apis/user_functions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context, json_object
from asterism.apis.nosql.resources.quotas import quota_of, sizes_of
from asterism.apis.nosql.resources.resource_feed import ResourceFeed, ToJson
from asterism.errors import MalformedRequest
from asterism.keyspaces.catalog.owned_records import OwnedRecords
from asterism.keyspaces.catalog.scripts_catalog import ScriptRecord, ScriptsCatalog
from asterism.models.documents.container import Container
from asterism.scripts.runtime import ScriptScope
from asterism.values.item import validate_resource_name
from asterism.values.resource_ids import self_link_of_child, self_link_of_collection, to_text

_SYSTEM_PROPERTIES: Final = frozenset({"id", "_rid", "_self", "_etag", "_ts"})
_TRIGGER_KINDS: Final = frozenset({"pre", "post"})
_TRIGGER_OPERATIONS: Final = frozenset({"all", "create", "update", "delete", "replace", "upsert"})


async def scope_of_scripts(context: Context, container: Container) -> ScriptScope:
    """Return the links by which a container's scripts may call it, and its quotas at the beginning of a run."""
    record = container.record
    database = context.store.catalog.databases[record.database_rid]
    quota = quota_of(context, container, await sizes_of(context, container))
    return ScriptScope(
        self_link_of_collection(record.rid),
        f"dbs/{database.name}/colls/{record.name}",
        quota_usage=quota.usage,
        quota_max=quota.maximum,
    )


def _check_no_more(body: Mapping[str, object]) -> None:
    """Accept any body: procedures and functions have no property to check but their JavaScript."""


def _check_trigger(body: Mapping[str, object]) -> None:
    for name, known in (("triggerType", _TRIGGER_KINDS), ("triggerOperation", _TRIGGER_OPERATIONS)):
        if str(body.get(name)).lower() not in known:
            raise MalformedRequest(reason=f"A trigger needs '{name}', one of {', '.join(sorted(known))}.")


@dataclass(frozen=True)
class ScriptFeed(ResourceFeed):
    """The handlers of one of the three feeds."""

    kind: str
    segment: str
    envelope: str
    choose: Callable[[ScriptsCatalog], OwnedRecords]
    check: Callable[[Mapping[str, object]], None] = _check_no_more

    def records(self, context: Context) -> OwnedRecords:
        return self.choose(context.store.catalog.scripts)

    def owner_rid(self, call: Call) -> bytes:
        return call.items_container().record.rid

    def name_at(self, call: Call) -> str:
        return call.script_name

    def parse(self, call: Call) -> tuple[str, dict[str, Any]]:
        body = json_object(call.request, call.context)
        name = validate_resource_name(body.get("id"))
        if not isinstance(body.get("body"), str):
            raise MalformedRequest(reason=f"A {self.kind} needs its JavaScript as 'body', a string.")
        self.check(body)
        return name, {key: value for key, value in body.items() if key not in _SYSTEM_PROPERTIES}

    def to_json_for(self, call: Call) -> ToJson:  # noqa: ARG002 - the same for every request
        return self._json

    def _json(self, record: ScriptRecord) -> dict[str, object]:
        return {
            **record.properties,
            "id": record.name,
            "_rid": to_text(record.rid),
            "_self": self_link_of_child(record.rid, segment=self.segment),
            "_etag": record.etag,
            "_ts": record.changed_at,
        }


PROCEDURES: Final = ScriptFeed(
    "stored procedure", "sprocs", "StoredProcedures", lambda catalog: catalog.stored_procedures
)
TRIGGERS: Final = ScriptFeed("trigger", "triggers", "Triggers", lambda catalog: catalog.triggers, _check_trigger)
FUNCTIONS: Final = ScriptFeed(
    "user-defined function", "udfs", "UserDefinedFunctions", lambda catalog: catalog.functions
)
