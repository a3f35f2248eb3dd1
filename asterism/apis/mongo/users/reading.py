"""Arguments of the commands for users and roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.arguments import wrong_type
from asterism.apis.mongo.users import builtin_roles
from asterism.apis.mongo.users.authorization import may, refusal
from asterism.apis.mongo.users.directory import Directory
from asterism.apis.mongo.users.rights import Role, role_id
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

_NAME_CHARACTERS_MAX = 512


def read_name(call: Call, kind: str) -> str:
    """Return the name behind a command: of a user or a role."""
    name = call.target
    path = f"{call.command.name}.{call.command.name}"
    # Code is text with another type, so that `isinstance` does not do.
    if type(name) is not str:
        raise wrong_type(path, name, ("string",))
    if not name or len(name) > _NAME_CHARACTERS_MAX or "\0" in name:
        raise MongoFailure(2, f"A {kind} name has 1 to {_NAME_CHARACTERS_MAX} characters, none of them zero")
    return name


def read_roles(call: Call, value: Any, path: str) -> list[Role]:
    """Return the roles of a list of names (of the command's database) and `{role, db}`."""
    if not isinstance(value, list):
        raise wrong_type(path, value, ("array",))
    found: dict[Role, None] = {}
    for entry in value:
        found[_read_role(call, entry, path)] = None
    return list(found)


def _read_role(call: Call, entry: Any, path: str) -> Role:
    if type(entry) is str:
        return entry, call.database
    if not isinstance(entry, dict):
        raise MongoFailure(2, "Role names must be either strings or objects")
    name, database = entry.get("role"), entry.get("db")
    for field, value in (("role", name), ("db", database)):
        if value is None:
            raise MongoFailure(4, f'Missing expected field "{field}"')
        if type(value) is not str:
            raise wrong_type(f"{path}.{field}", value, ("string",))
    if set(entry) - {"role", "db"}:
        raise MongoFailure(2, "A role has the fields 'role' and 'db' only")
    return str(name), str(database)


def check_roles(call: Call, directory: Directory, roles: list[Role]) -> None:
    """Refuse roles that do not exist, and those that the sender must not hand on."""
    for name, database in roles:
        if not builtin_roles.is_builtin(name, database) and role_id(name, database) not in directory.roles:
            raise MongoFailure(31, f"Could not find role: {name}@{database}")
        if not may(call, "grantRole", (database, "")):
            raise refusal(call)


def read_privileges(value: Any, path: str) -> list[Document]:
    """Return a list of privileges, checked."""
    if not isinstance(value, list):
        raise wrong_type(path, value, ("array",))
    return [_read_privilege(entry, path) for entry in value]


def _read_privilege(entry: Any, path: str) -> Document:
    if not isinstance(entry, dict):
        raise wrong_type(path, entry, ("object",))
    if set(entry) - {"resource", "actions"}:
        raise MongoFailure(40415, f"BSON field '{path}' has an unknown field; it has 'resource' and 'actions'")
    resource, actions = entry.get("resource"), entry.get("actions")
    if resource is None or actions is None:
        raise MongoFailure(40414, f"BSON field '{path}' needs 'resource' and 'actions'")
    if not isinstance(resource, dict):
        raise wrong_type(f"{path}.resource", resource, ("object",))
    if not isinstance(actions, list) or not all(type(action) is str for action in actions):
        raise wrong_type(f"{path}.actions", actions, ("array of strings",))
    if not actions:
        raise MongoFailure(9, "A privilege has at least one action")
    unknown = [action for action in actions if action not in builtin_roles.ALL_ACTIONS]
    if unknown:
        raise MongoFailure(9, f"Unrecognized action privilege strings: {', '.join(unknown)}")
    return {"resource": _read_resource(resource), "actions": sorted(set(actions))}


def _read_resource(resource: Document) -> Document:
    for flag in ("cluster", "anyResource"):
        if set(resource) == {flag} and resource[flag] is True:
            return {flag: True}
    database, collection = resource.get("db"), resource.get("collection")
    if set(resource) != {"db", "collection"} or type(database) is not str or type(collection) is not str:
        raise MongoFailure(9, "A resource is {cluster: true}, {anyResource: true} or {db: <text>, collection: <text>}")
    return {"db": database, "collection": collection}


def merge_privileges(before: list[Document], added: list[Document]) -> list[Document]:
    """Add actions to those of the same resource."""
    merged = [{**privilege, "actions": list(privilege["actions"])} for privilege in before]
    for privilege in added:
        same = next((found for found in merged if found["resource"] == privilege["resource"]), None)
        if same is None:
            merged.append(privilege)
        else:
            same["actions"] = sorted({*same["actions"], *privilege["actions"]})
    return merged


def subtract_privileges(before: list[Document], removed: list[Document]) -> list[Document]:
    """Take actions away; a resource without actions goes, too."""
    left = []
    for privilege in before:
        gone = {
            action for other in removed if other["resource"] == privilege["resource"] for action in other["actions"]
        }
        actions = [action for action in privilege["actions"] if action not in gone]
        if actions:
            left.append({**privilege, "actions": actions})
    return left
