"""Commands for users."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.arguments import TRUTH, as_bool, wrong_type
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import ARRAY, OBJECT, STRING, Access, Command, FieldRule, Target
from asterism.apis.mongo.users import scram
from asterism.apis.mongo.users.authorization import may, refusal
from asterism.apis.mongo.users.credentials import credentials_of
from asterism.apis.mongo.users.directory import Directory
from asterism.apis.mongo.users.reading import check_roles, read_name, read_roles
from asterism.apis.mongo.users.rights import role_id, roles_in, shown_roles
from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.values.bson.types import Binary, Document

_EXTERNAL = "$external"


async def create_user(call: Call) -> Document:
    name = read_name(call, "user")
    if "pwd" not in call.body and call.database != _EXTERNAL:
        raise MongoFailure(
            2, "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source"
        )
    if call.database == _EXTERNAL:
        raise MongoFailure(2, "Users of '$external' need a service for logins, which this server does not have")
    roles = read_roles(call, call.body["roles"], "createUser.roles")
    identity = role_id(name, call.database)
    user: Document = {
        "_id": identity,
        "userId": Binary(_uuid(call), 4),
        "user": name,
        "db": call.database,
        "credentials": await _credentials(call, name, _mechanisms(call) or list(scram.MECHANISMS)),
        "roles": shown_roles(roles),
    }
    if call.get("customData") is not None:
        user["customData"] = call.body["customData"]

    def add(directory: Directory) -> Directory:
        if identity in directory.users:
            raise MongoFailure(51003, f'User "{name}@{call.database}" already exists')
        check_roles(call, directory, roles)
        return directory.with_user(user)

    await call.context.authenticator.directory.change(call.account, add)
    return {}


async def update_user(call: Call) -> Document:
    name = read_name(call, "user")
    _check_update(call, name)
    if not {"pwd", "customData", "roles", "mechanisms", "authenticationRestrictions"} & call.body.keys():
        raise MongoFailure(2, "Must specify at least one field to update in updateUser")
    roles = None if "roles" not in call.body else read_roles(call, call.body["roles"], "updateUser.roles")
    directory = await call.context.authenticator.directory.load(call.account)
    before = directory.users.get(role_id(name, call.database))
    if before is None:
        raise _no_user(name, call.database)
    wanted = _mechanisms(call)
    credentials: Document | None = None
    if "pwd" in call.body:
        credentials = await _credentials(call, name, wanted or list(before["credentials"]))
    elif wanted is not None:
        if not set(wanted) <= before["credentials"].keys():
            raise MongoFailure(2, "mechanisms field must be a subset of previously set mechanisms")
        credentials = {mechanism: before["credentials"][mechanism] for mechanism in wanted}

    def change(directory: Directory) -> Directory:
        user = _user(directory, name, call.database)
        if credentials is not None:
            user["credentials"] = credentials
        if roles is not None:
            check_roles(call, directory, roles)
            user["roles"] = shown_roles(roles)
        if call.get("customData") is not None:
            user["customData"] = call.body["customData"]
        return directory.with_user(user)

    await call.context.authenticator.directory.change(call.account, change)
    return {}


def _check_update(call: Call, name: str) -> None:
    """Let users change their own password and data if a role says so, and administrators those of all."""
    place = (call.database, "")
    is_own = (call.connection.user_name, call.connection.user_database) == (name, call.database)
    for field, action, own_action in (
        ("pwd", "changePassword", "changeOwnPassword"),
        ("customData", "changeCustomData", "changeOwnCustomData"),
        ("roles", "revokeRole", ""),
        ("mechanisms", "changePassword", ""),
    ):
        may_own = is_own and bool(own_action) and may(call, own_action, place)
        if field in call.body and not may_own and not may(call, action, place):
            raise refusal(call)


async def drop_user(call: Call) -> Document:
    name = read_name(call, "user")

    def remove(directory: Directory) -> Directory:
        _user(directory, name, call.database)
        return directory.without_user(role_id(name, call.database))

    await call.context.authenticator.directory.change(call.account, remove)
    return {}


async def drop_all_users(call: Call) -> Document:
    dropped: list[str] = []

    def remove(directory: Directory) -> Directory:
        dropped[:] = [key for key, user in directory.users.items() if user["db"] == call.database]
        for key in dropped:
            directory = directory.without_user(key)
        return directory

    await call.context.authenticator.directory.change(call.account, remove)
    return {"n": len(dropped)}


async def grant_roles(call: Call) -> Document:
    name = read_name(call, "user")
    roles = read_roles(call, call.body["roles"], "grantRolesToUser.roles")

    def grant(directory: Directory) -> Directory:
        user = _user(directory, name, call.database)
        check_roles(call, directory, roles)
        user["roles"] = shown_roles(dict.fromkeys([*roles_in(user), *roles]))
        return directory.with_user(user)

    await call.context.authenticator.directory.change(call.account, grant)
    return {}


async def revoke_roles(call: Call) -> Document:
    name = read_name(call, "user")
    roles = read_roles(call, call.body["roles"], "revokeRolesFromUser.roles")

    def revoke(directory: Directory) -> Directory:
        user = _user(directory, name, call.database)
        user["roles"] = shown_roles(role for role in roles_in(user) if role not in roles)
        return directory.with_user(user)

    await call.context.authenticator.directory.change(call.account, revoke)
    return {}


async def users_info(call: Call) -> Document:
    directory = await call.context.authenticator.directory.load(call.account)
    wanted = _wanted(call, directory)
    own = role_id(call.connection.user_name, call.connection.user_database)
    shown = []
    for user in wanted:
        if user["_id"] != own and not may(call, "viewUser", (user["db"], "")):
            raise refusal(call)
        shown.append(_shown(call, directory, user))
    if call.get("filter"):
        shown = _filtered(call, shown)
    return {"users": shown}


def _wanted(call: Call, directory: Directory) -> list[Document]:
    target: Any = call.target
    users = sorted(directory.users.values(), key=lambda user: (user["db"], user["user"]))
    if isinstance(target, dict) and "forAllDBs" in target:
        return users
    if isinstance(target, (int, float)) and not isinstance(target, bool):
        if not may(call, "viewUser", (call.database, "")):
            raise refusal(call)
        return [user for user in users if user["db"] == call.database]
    named = target if isinstance(target, list) else [target]
    identities = [_identity(call, entry) for entry in named]
    return [directory.users[identity] for identity in dict.fromkeys(identities) if identity in directory.users]


def _identity(call: Call, entry: Any) -> str:
    if type(entry) is str:
        return role_id(entry, call.database)
    if not isinstance(entry, dict):
        raise MongoFailure(
            2, "usersInfo takes 1, a name, {user: <name>, db: <name>}, a list of them, or {forAllDBs: 1}"
        )
    name, database = entry.get("user"), entry.get("db")
    if type(name) is not str or type(database) is not str:
        raise MongoFailure(4, "A user is named by the texts 'user' and 'db'")
    return role_id(name, database)


def _shown(call: Call, directory: Directory, user: Document) -> Document:
    shown = {name: value for name, value in user.items() if name not in ("credentials", "customData")}
    if "customData" in user and as_bool(call.get("showCustomData", True)):
        shown["customData"] = user["customData"]
    shown["mechanisms"] = sorted(user["credentials"])
    if as_bool(call.get("showCredentials", False)):
        shown["credentials"] = user["credentials"]
    if as_bool(call.get("showPrivileges", False)):
        rights = directory.rights(user["_id"])
        assert rights is not None, "the user is in the directory"
        shown["inheritedRoles"] = shown_roles(rights.inherited)
        shown["inheritedPrivileges"] = rights.privileges()
        shown["inheritedAuthenticationRestrictions"] = []
    return shown


def _filtered(call: Call, documents: list[Document]) -> list[Document]:
    matches = compile_filter(call.body["filter"], new_context(call.now, call.cluster_time)).matches
    return [document for document in documents if matches(document)]


def _user(directory: Directory, name: str, database: str) -> Document:
    """Return a copy of a user; UserNotFound (11)."""
    found = directory.users.get(role_id(name, database))
    if found is None:
        raise _no_user(name, database)
    return dict(found)


def _no_user(name: str, database: str) -> MongoFailure:
    return MongoFailure(11, f"User '{name}@{database}' not found")


def _mechanisms(call: Call) -> list[str] | None:
    wanted = call.get("mechanisms")
    if wanted is None:
        return None
    if not wanted:
        raise MongoFailure(2, "mechanisms field must not be empty")
    for mechanism in wanted:
        if type(mechanism) is not str:
            raise wrong_type(f"{call.command.name}.mechanisms", mechanism, ("string",))
        if mechanism not in scram.MECHANISMS:
            raise MongoFailure(2, f"Unknown auth mechanism '{mechanism}'")
    return list(dict.fromkeys(wanted))


async def _credentials(call: Call, name: str, mechanisms: list[str]) -> Document:
    password = call.body["pwd"]
    if type(password) is not str:
        raise wrong_type(f"{call.command.name}.pwd", password, ("string",))
    if not password:
        raise MongoFailure(2, "Password cannot be empty")
    is_digested = not as_bool(call.get("digestPassword", True))
    if is_digested and mechanisms != [scram.SHA_1]:
        raise MongoFailure(2, "Use of SCRAM-SHA-256 requires undigested passwords")
    return await credentials_of(name, password, mechanisms, call.services.random_bytes, is_digested=is_digested)


def _uuid(call: Call) -> bytes:
    identity = bytearray(call.services.random_bytes(16))
    identity[6], identity[8] = identity[6] & 0x0F | 0x40, identity[8] & 0x3F | 0x80
    return bytes(identity)


_TRUTH = FieldRule(TRUTH)
_ROLES = FieldRule(("array",), is_required=True)
_USER_FIELDS = {
    "pwd": STRING,
    "customData": OBJECT,
    "digestPassword": _TRUTH,
    "mechanisms": ARRAY,
    "authenticationRestrictions": ARRAY,
}
_ADMIN = Access.USER_ADMIN

COMMANDS = (
    Command("createUser", create_user, "Create a user.", fields={**_USER_FIELDS, "roles": _ROLES},
            target=Target.OWN, access=_ADMIN, writes=True),
    Command("updateUser", update_user, "Change a user.", fields={**_USER_FIELDS, "roles": ARRAY}, target=Target.OWN,
            access=_ADMIN, writes=True),
    Command("dropUser", drop_user, "Drop a user.", target=Target.OWN, access=_ADMIN, writes=True),
    Command("dropAllUsersFromDatabase", drop_all_users, "Drop the users of the database.", access=_ADMIN, writes=True),
    Command("grantRolesToUser", grant_roles, "Give roles to a user.", fields={"roles": _ROLES}, target=Target.OWN,
            access=_ADMIN, writes=True),
    Command("revokeRolesFromUser", revoke_roles, "Take roles from a user.", fields={"roles": _ROLES},
            target=Target.OWN, access=_ADMIN, writes=True),
    Command("usersInfo", users_info, "Users and their roles.", target=Target.OWN, access=_ADMIN,
            fields={"showCredentials": _TRUTH, "showPrivileges": _TRUTH, "showCustomData": _TRUTH,
                    "showAuthenticationRestrictions": _TRUTH, "filter": OBJECT}),
)  # fmt: skip
