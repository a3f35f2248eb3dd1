"""Commands for roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.apis.mongo.arguments import TRUTH, as_bool
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import ARRAY, Access, Command, FieldRule, Target
from asterism.apis.mongo.users import builtin_roles
from asterism.apis.mongo.users.authorization import may, refusal
from asterism.apis.mongo.users.directory import Directory
from asterism.apis.mongo.users.reading import (
    check_roles,
    merge_privileges,
    read_name,
    read_privileges,
    read_roles,
    subtract_privileges,
)
from asterism.apis.mongo.users.rights import Role, rights_of, role_id, roles_in, shown_resource, shown_roles
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document


async def create_role(call: Call) -> Document:
    name = read_name(call, "role")
    identity = role_id(name, call.database)
    if builtin_roles.is_builtin(name, call.database):
        raise MongoFailure(2, f"Cannot create roles with the same name as a built-in role: {name}")
    privileges = read_privileges(call.body["privileges"], "createRole.privileges")
    roles = read_roles(call, call.body["roles"], "createRole.roles")
    _check_reach(call, privileges, roles)

    def add(directory: Directory) -> Directory:
        if identity in directory.roles:
            raise MongoFailure(51002, f'Role "{name}@{call.database}" already exists')
        check_roles(call, directory, roles)
        return directory.with_role(
            {
                "_id": identity,
                "role": name,
                "db": call.database,
                "privileges": merge_privileges([], privileges),
                "roles": shown_roles(roles),
            }
        )

    await call.context.authenticator.directory.change(call.account, add)
    return {}


async def update_role(call: Call) -> Document:
    privileges, roles = call.body.get("privileges"), call.body.get("roles")
    if privileges is None and roles is None:
        raise MongoFailure(2, "Must specify at least one field to update in updateRole")
    read = None if privileges is None else read_privileges(privileges, "updateRole.privileges")
    wanted = None if roles is None else read_roles(call, roles, "updateRole.roles")

    def change(role: Document, directory: Directory) -> Document:
        _check_reach(call, read or [], wanted or [])
        if read is not None:
            role["privileges"] = merge_privileges([], read)
        if wanted is not None:
            check_roles(call, directory, wanted)
            _check_cycle(directory, (role["role"], role["db"]), wanted)
            role["roles"] = shown_roles(wanted)
        return role

    return await _change_role(call, change)


async def grant_privileges(call: Call) -> Document:
    privileges = read_privileges(call.body["privileges"], "grantPrivilegesToRole.privileges")
    _check_reach(call, privileges, [])

    def change(role: Document, _: Directory) -> Document:
        return {**role, "privileges": merge_privileges(role["privileges"], privileges)}

    return await _change_role(call, change)


async def revoke_privileges(call: Call) -> Document:
    privileges = read_privileges(call.body["privileges"], "revokePrivilegesFromRole.privileges")

    def change(role: Document, _: Directory) -> Document:
        return {**role, "privileges": subtract_privileges(role["privileges"], privileges)}

    return await _change_role(call, change)


async def grant_roles(call: Call) -> Document:
    roles = read_roles(call, call.body["roles"], "grantRolesToRole.roles")
    _check_reach(call, [], roles)

    def change(role: Document, directory: Directory) -> Document:
        check_roles(call, directory, roles)
        _check_cycle(directory, (role["role"], role["db"]), roles)
        return {**role, "roles": shown_roles(dict.fromkeys([*roles_in(role), *roles]))}

    return await _change_role(call, change)


async def revoke_roles(call: Call) -> Document:
    roles = read_roles(call, call.body["roles"], "revokeRolesFromRole.roles")

    def change(role: Document, _: Directory) -> Document:
        return {**role, "roles": shown_roles(kept for kept in roles_in(role) if kept not in roles)}

    return await _change_role(call, change)


async def _change_role(call: Call, change: Callable[[Document, Directory], Document]) -> Document:
    name = read_name(call, "role")
    if builtin_roles.is_builtin(name, call.database):
        raise MongoFailure(2, f"{name}@{call.database} is a built-in role and cannot be modified")

    def apply(directory: Directory) -> Directory:
        role = directory.roles.get(role_id(name, call.database))
        if role is None:
            raise _no_role(name, call.database)
        return directory.with_role(change(dict(role), directory))

    await call.context.authenticator.directory.change(call.account, apply)
    return {}


async def drop_role(call: Call) -> Document:
    name = read_name(call, "role")
    if builtin_roles.is_builtin(name, call.database):
        raise MongoFailure(2, f"{name}@{call.database} is a built-in role and cannot be dropped")

    def remove(directory: Directory) -> Directory:
        if role_id(name, call.database) not in directory.roles:
            raise _no_role(name, call.database)
        return directory.without_roles([(name, call.database)])

    await call.context.authenticator.directory.change(call.account, remove)
    return {}


async def drop_all_roles(call: Call) -> Document:
    dropped: list[Role] = []

    def remove(directory: Directory) -> Directory:
        dropped[:] = [(role["role"], role["db"]) for role in directory.roles.values() if role["db"] == call.database]
        return directory.without_roles(dropped) if dropped else directory

    await call.context.authenticator.directory.change(call.account, remove)
    return {"n": len(dropped)}


async def roles_info(call: Call) -> Document:
    directory = await call.context.authenticator.directory.load(call.account)
    if not call.connection.is_owner and not may(call, "viewRole", (call.database, "")):
        raise refusal(call)
    return {"roles": [_shown(call, directory, role) for role in _wanted(call, directory)]}


async def invalidate_user_cache(call: Call) -> Document:
    await call.context.authenticator.directory.load(call.account)
    return {}


def _wanted(call: Call, directory: Directory) -> list[Role]:
    target: Any = call.target
    if isinstance(target, (int, float)) and not isinstance(target, bool):
        stored = [(role["role"], role["db"]) for role in directory.roles.values() if role["db"] == call.database]
        builtin = builtin_roles.names_of(call.database) if as_bool(call.get("showBuiltinRoles", False)) else []
        return sorted(stored) + [(name, call.database) for name in builtin]
    if type(target) not in (str, dict, list):
        raise MongoFailure(2, "rolesInfo takes 1, a name, {role: <name>, db: <name>}, or a list of them")
    named = read_roles(call, target if isinstance(target, list) else [target], "rolesInfo")
    return [role for role in named if builtin_roles.is_builtin(*role) or role_id(*role) in directory.roles]


def _shown(call: Call, directory: Directory, role: Role) -> Document:
    name, database = role
    is_builtin = builtin_roles.is_builtin(name, database)
    stored = directory.roles.get(role_id(name, database), {"roles": [], "privileges": []})
    rights = rights_of([role], directory.roles)
    inherited = [other for other in rights.inherited if other != role]
    shown: Document = {
        "_id": role_id(name, database),
        "role": name,
        "db": database,
        "isBuiltin": is_builtin,
        "roles": stored["roles"],
        "inheritedRoles": shown_roles(inherited),
    }
    if as_bool(call.get("showPrivileges", False)):
        privileges = [
            {"resource": shown_resource(resource), "actions": sorted(actions)}
            for resource, actions in rights.by_resource.items()
        ]
        shown["privileges"] = privileges if is_builtin else stored["privileges"]
        shown["inheritedPrivileges"] = privileges
    return shown


def _check_reach(call: Call, privileges: list[Document], roles: list[Role]) -> None:
    """Refuse a role that reaches beyond its database, but in `admin`; and actions that the sender must not hand on."""
    for privilege in privileges:
        resource = privilege["resource"]
        database = resource.get("db", "")
        if call.database != builtin_roles.ADMIN and database != call.database:
            raise MongoFailure(
                2, f"Roles on the '{call.database}' database cannot be granted privileges that target other databases"
            )
        if not may(call, "grantRole", (database, "")):
            raise refusal(call)
    for name, database in roles:
        if call.database != builtin_roles.ADMIN and database != call.database:
            raise MongoFailure(
                2,
                f"Roles on the '{call.database}' database cannot be granted roles from other databases: "
                f"{name}@{database}",
            )


def _check_cycle(directory: Directory, role: Role, granted: list[Role]) -> None:
    if role in rights_of(granted, directory.roles).inherited:
        raise MongoFailure(34, f"Granting these roles to {role[0]}@{role[1]} would introduce a cycle")


def _no_role(name: str, database: str) -> MongoFailure:
    return MongoFailure(31, f"Role '{name}@{database}' not found")


_TRUTH = FieldRule(TRUTH)
_ROLES = FieldRule(("array",), is_required=True)
_ADMIN = Access.USER_ADMIN

COMMANDS = (
    Command("createRole", create_role, "Create a role.", target=Target.OWN, access=_ADMIN, writes=True,
            fields={"privileges": _ROLES, "roles": _ROLES, "authenticationRestrictions": ARRAY}),
    Command("updateRole", update_role, "Change a role.", target=Target.OWN, access=_ADMIN, writes=True,
            fields={"privileges": ARRAY, "roles": ARRAY, "authenticationRestrictions": ARRAY}),
    Command("dropRole", drop_role, "Drop a role.", target=Target.OWN, access=_ADMIN, writes=True),
    Command("dropAllRolesFromDatabase", drop_all_roles, "Drop the roles of the database.", access=_ADMIN, writes=True),
    Command("grantPrivilegesToRole", grant_privileges, "Add privileges to a role.", target=Target.OWN, access=_ADMIN,
            fields={"privileges": _ROLES}, writes=True),
    Command("revokePrivilegesFromRole", revoke_privileges, "Take privileges from a role.", target=Target.OWN,
            access=_ADMIN, fields={"privileges": _ROLES}, writes=True),
    Command("grantRolesToRole", grant_roles, "Put roles into a role.", target=Target.OWN, access=_ADMIN,
            fields={"roles": _ROLES}, writes=True),
    Command("revokeRolesFromRole", revoke_roles, "Take roles out of a role.", target=Target.OWN, access=_ADMIN,
            fields={"roles": _ROLES}, writes=True),
    Command("rolesInfo", roles_info, "Roles and their privileges.", target=Target.OWN, access=_ADMIN,
            fields={"showPrivileges": FieldRule(("bool", "string", *TRUTH[1:])), "showBuiltinRoles": _TRUTH,
                    "showAuthenticationRestrictions": _TRUTH}),
    Command("invalidateUserCache", invalidate_user_cache, "Read users and roles again.", access=_ADMIN),
)  # fmt: skip
