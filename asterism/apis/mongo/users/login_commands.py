"""Commands of logins."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.arguments import TRUTH
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule
from asterism.apis.mongo.users.authentication import failed
from asterism.apis.mongo.users.rights import shown_roles
from asterism.values.bson.types import Document


async def sasl_start(call: Call) -> Document:
    return await call.context.authenticator.start(call.connection, call.body, call.database)


async def sasl_continue(call: Call) -> Document:
    return await call.context.authenticator.go_on(call.connection, call.body)


async def authenticate(_: Call) -> Document:
    """Refuse the login of old protocols, in which only certificates are left."""
    raise failed()


async def logout(call: Call) -> Document:
    call.context.authenticator.greet(call.connection)
    return {}


async def connection_status(call: Call) -> Document:
    connection = call.connection
    users: list[Any] = []
    roles: list[Any] = []
    privileges: list[Any] = []
    if connection.user_name:
        users = [{"user": connection.user_name, "db": connection.user_database}]
        if connection.is_owner:
            roles = [{"role": "root", "db": "admin"}]
            privileges = [{"resource": {"anyResource": True}, "actions": ["anyAction"]}]
        elif connection.rights is not None:
            roles = shown_roles(connection.rights.inherited)
            privileges = connection.rights.privileges()
    info: Document = {"authenticatedUsers": users, "authenticatedUserRoles": roles}
    if call.flag("showPrivileges"):
        info["authenticatedUserPrivileges"] = privileges
    return {"authInfo": info}


_OPEN = Access.NOBODY

COMMANDS = (
    Command("connectionStatus", connection_status, "The user who is logged in, and the rights it has.", access=_OPEN,
            fields={"showPrivileges": FieldRule(TRUTH)}),
    Command("saslStart", sasl_start, "Begin a login.", access=_OPEN, ignores_unknown_fields=True),
    Command("saslContinue", sasl_continue, "Go on with a login.", access=_OPEN, ignores_unknown_fields=True),
    Command("authenticate", authenticate, "Log in with a certificate, which this server does not accept.",
            access=_OPEN, ignores_unknown_fields=True),
    Command("logout", logout, "End a login.", access=_OPEN),
)  # fmt: skip
