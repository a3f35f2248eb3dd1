"""The rights of a user: actions on collections, databases and the cluster, put together from roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asterism.apis.mongo.users import builtin_roles
from asterism.values.bson.types import Document

# Databases of the server itself: the roles for any database leave them out, except for reading.
_OWN_DATABASES = frozenset({"local", "config"})
ANY_ACTION = "anyAction"

# Database and collection, "" for any; None for the cluster.
Resource = tuple[str, str] | None
Role = tuple[str, str]


@dataclass(slots=True)
class Rights:
    """Actions by resource. One per user, and per version of its roles."""

    roles: tuple[Role, ...] = ()
    inherited: tuple[Role, ...] = ()
    by_resource: dict[Resource, set[str]] = field(default_factory=dict)
    has_everything: bool = False

    def add(self, resource: Resource, actions: Iterable[str]) -> None:
        self.by_resource.setdefault(resource, set()).update(actions)

    def allow(self, action: str, resource: Resource) -> bool:
        if self.has_everything:
            return True
        if resource is None:
            return self._has(action, None)
        database, collection = resource
        return (
            self._has(action, (database, ""))
            or self._has(action, resource)
            or (self._has(action, ("", "")) and self._is_of_users(database, action))
            or self._has(action, ("", collection))
        )

    def sees_database(self, database: str) -> bool:
        """True if the user may do anything in a database, so that it may know that it exists."""
        if self.has_everything or self._has("listDatabases", None):
            return True
        return any(found is not None and found[0] in (database, "") for found in self.by_resource)

    def privileges(self) -> list[Document]:
        """Return the rights as the protocol shows them."""
        if self.has_everything:
            return [{"resource": {"anyResource": True}, "actions": [ANY_ACTION]}]
        return [
            {"resource": shown_resource(resource), "actions": sorted(actions)}
            for resource, actions in self.by_resource.items()
        ]

    def _has(self, action: str, resource: Resource) -> bool:
        actions = self.by_resource.get(resource)
        return actions is not None and (action in actions or ANY_ACTION in actions)

    def _is_of_users(self, database: str, action: str) -> bool:
        return database not in _OWN_DATABASES or action in builtin_roles.READ


def rights_of(roles: Iterable[Role], custom: Mapping[str, Document]) -> Rights:
    """Put together the rights of roles and of those that they contain; `custom` are the stored roles by id."""
    direct = tuple(roles)
    seen: dict[Role, None] = {}
    rights = Rights(direct)
    waiting = list(direct)
    while waiting:
        role = waiting.pop()
        if role in seen:
            continue
        seen[role] = None
        name, database = role
        if builtin_roles.is_builtin(name, database):
            _add_builtin(rights, name, database)
            continue
        stored = custom.get(role_id(name, database))
        if stored is not None:
            _add_privileges(rights, stored["privileges"])
            waiting += roles_in(stored)
    rights.inherited = tuple(sorted(seen))
    return rights


def role_id(name: str, database: str) -> str:
    return f"{database}.{name}"


def roles_in(record: Document) -> list[Role]:
    """Return the roles of a stored user or role."""
    return [(role["role"], role["db"]) for role in record["roles"]]


def shown_roles(roles: Iterable[Role]) -> list[Document]:
    return [{"role": name, "db": database} for name, database in roles]


def shown_resource(resource: Resource) -> Document:
    if resource is None:
        return {"cluster": True}
    return {"db": resource[0], "collection": resource[1]}


def _add_builtin(rights: Rights, name: str, database: str) -> None:
    own = builtin_roles.OF_DATABASE.get(name)
    if own is not None:
        rights.add((database, ""), own)
        return
    everywhere, cluster = builtin_roles.OF_ADMIN[name]
    rights.add(("", ""), everywhere)
    rights.add(None, cluster)
    if name == "root":
        rights.has_everything = True


def _add_privileges(rights: Rights, privileges: Iterable[Mapping[str, Any]]) -> None:
    for privilege in privileges:
        resource, actions = privilege["resource"], privilege["actions"]
        if resource.get("anyResource"):
            rights.add(("", ""), actions)
            rights.add(None, actions)
            rights.has_everything = rights.has_everything or ANY_ACTION in actions
        elif resource.get("cluster"):
            rights.add(None, actions)
        else:
            rights.add((resource["db"], resource["collection"]), actions)
