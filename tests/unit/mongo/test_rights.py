"""Rights from roles: what is allowed where."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.apis.mongo.users.reading import merge_privileges, subtract_privileges
from asterism.apis.mongo.users.rights import Resource, Rights, rights_of

CUSTOM: dict[str, Any] = {
    "shop.clerk": {
        "privileges": [{"resource": {"db": "shop", "collection": "orders"}, "actions": ["find", "insert"]}],
        "roles": [{"role": "guest", "db": "shop"}],
    },
    "shop.guest": {
        "privileges": [{"resource": {"db": "shop", "collection": "news"}, "actions": ["find"]}],
        "roles": [{"role": "clerk", "db": "shop"}],
    },
    "admin.keeper": {
        "privileges": [
            {"resource": {"cluster": True}, "actions": ["serverStatus"]},
            {"resource": {"db": "", "collection": "logs"}, "actions": ["remove"]},
        ],
        "roles": [],
    },
    "admin.all": {"privileges": [{"resource": {"anyResource": True}, "actions": ["anyAction"]}], "roles": []},
}


def of(*roles: tuple[str, str]) -> Rights:
    return rights_of(roles, CUSTOM)


@pytest.mark.parametrize(
    ("role", "action", "resource", "allowed"),
    [
        (("read", "shop"), "find", ("shop", "a"), True),
        (("read", "shop"), "insert", ("shop", "a"), False),
        (("read", "shop"), "find", ("other", "a"), False),
        (("readWrite", "shop"), "insert", ("shop", "a"), True),
        (("readWrite", "shop"), "collMod", ("shop", "a"), False),
        (("dbAdmin", "shop"), "collMod", ("shop", "a"), True),
        (("dbAdmin", "shop"), "find", ("shop", "a"), False),
        (("dbOwner", "shop"), "createUser", ("shop", ""), True),
        (("dbOwner", "shop"), "createUser", ("admin", ""), False),
        (("userAdmin", "shop"), "grantRole", ("shop", ""), True),
        (("userAdmin", "shop"), "grantRole", ("admin", ""), False),
        (("readAnyDatabase", "admin"), "find", ("shop", "a"), True),
        (("readAnyDatabase", "shop"), "find", ("shop", "a"), False),
        (("readWriteAnyDatabase", "admin"), "insert", ("shop", "a"), True),
        (("readWriteAnyDatabase", "admin"), "insert", ("config", "a"), False),
        (("clusterMonitor", "admin"), "serverStatus", None, True),
        (("clusterMonitor", "admin"), "setParameter", None, False),
        (("clusterAdmin", "admin"), "setParameter", None, True),
        (("clusterAdmin", "admin"), "find", ("shop", "a"), False),
        (("root", "admin"), "anything", None, True),
        (("clerk", "shop"), "insert", ("shop", "orders"), True),
        (("clerk", "shop"), "insert", ("shop", "news"), False),
        (("clerk", "shop"), "find", ("shop", "news"), True),
        (("clerk", "other"), "insert", ("shop", "orders"), False),
        (("keeper", "admin"), "serverStatus", None, True),
        (("keeper", "admin"), "remove", ("any", "logs"), True),
        (("keeper", "admin"), "remove", ("any", "data"), False),
        (("all", "admin"), "shutdown", None, True),
    ],
)
def test_a_role_allows_its_actions_on_its_resources(
    role: tuple[str, str], action: str, resource: Resource, allowed: bool
) -> None:
    assert of(role).allow(action, resource) is allowed


def test_a_user_sees_the_databases_that_it_has_rights_on() -> None:
    assert of(("clerk", "shop")).sees_database("shop")
    assert not of(("clerk", "shop")).sees_database("other")
    assert of(("clusterMonitor", "admin")).sees_database("other")


def test_privileges_are_merged_by_resource() -> None:
    orders, news = ({"db": "shop", "collection": name} for name in ("orders", "news"))
    both = merge_privileges([{"resource": orders, "actions": ["find"]}], [{"resource": orders, "actions": ["insert"]}])
    assert both == [{"resource": orders, "actions": ["find", "insert"]}]
    assert subtract_privileges(both, [{"resource": orders, "actions": ["find"]}]) == [
        {"resource": orders, "actions": ["insert"]}
    ]
    assert subtract_privileges(both, [{"resource": news, "actions": ["find"]}]) == both
    assert subtract_privileges(both, both) == []
