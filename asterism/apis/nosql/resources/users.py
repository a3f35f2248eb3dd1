"""Users of a database: the owners of permissions. There is no login; programs send the token of a permission."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context, json_object
from asterism.apis.nosql.resources.resource_feed import ResourceFeed, ToJson
from asterism.keyspaces.catalog.owned_records import OwnedRecord, OwnedRecords
from asterism.values.item import validate_resource_name
from asterism.values.resource_ids import self_link_of_user, to_text


class UserFeed(ResourceFeed):
    kind = "user"
    segment = "users"
    envelope = "Users"

    def records(self, context: Context) -> OwnedRecords:
        return context.store.catalog.users

    def owner_rid(self, call: Call) -> bytes:
        return call.owning_database().rid

    def name_at(self, call: Call) -> str:
        return call.user_name

    def parse(self, call: Call) -> tuple[str, dict[str, Any]]:
        return validate_resource_name(json_object(call.request, call.context).get("id")), {}

    def to_json_for(self, call: Call) -> ToJson:  # noqa: ARG002 - the same for every request
        return _user_json

    async def delete_record(self, context: Context, record: OwnedRecord) -> None:
        """Delete a user with the user's permissions; the tokens that were handed out for them end with that."""
        await context.store.catalog.delete_user(record)


def _user_json(record: OwnedRecord) -> dict[str, object]:
    return {
        "id": record.name,
        "_rid": to_text(record.rid),
        "_self": self_link_of_user(record.rid),
        "_etag": record.etag,
        "_permissions": "permissions/",
        "_ts": record.changed_at,
    }


USERS: Final = UserFeed()
