"""Logins, users and roles with MongoDB's own driver, against a server with a key of its own."""

from __future__ import annotations

import base64
import json
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bson import Int64
from pymongo import InsertOne, MongoClient
from pymongo.errors import ClientBulkWriteException, OperationFailure

from asterism.access.keys import derive_secondary_key
from tests.support.mongo_messages import RawClient
from tests.support.raw import wait_until
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment, running_server

Client = MongoClient[dict[str, Any]]
KEY = base64.b64encode(bytes(range(64))).decode()
SECOND_KEY = derive_secondary_key(KEY)
ACCOUNT = "localhost"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data = tmp_path_factory.mktemp("locked") / "data"
    options = ("--key", KEY, "--no-throttle")
    with running_server(data, *options, doors=("nosql", "mongo")) as server:
        yield server


@contextmanager
def logged_in(server: RunningServer, user: str, password: str, **options: Any) -> Iterator[Client]:
    with Client("127.0.0.1", server.ports["mongo"], username=user, password=password, **options) as client:
        yield client


@pytest.fixture(scope="module")
def owner(locked: RunningServer) -> Iterator[Client]:
    with logged_in(locked, ACCOUNT, KEY) as client:
        yield client


@pytest.fixture
def shop(owner: Client) -> Iterator[str]:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    owner[name].orders.insert_many([{"_id": number} for number in range(300)])
    yield name
    owner[name].command("dropAllUsersFromDatabase")
    owner[name].command("dropAllRolesFromDatabase")
    owner.drop_database(name)


def code_of(client: Client, database: str, command: dict[str, Any]) -> int:
    """Return the code with which a command is refused; 0 if it is not."""
    try:
        client[database].command(command)
    except OperationFailure as refused:
        return refused.code or -1
    return 0


def login_code(server: RunningServer, user: str, password: str, **options: Any) -> int:
    with logged_in(server, user, password, **options) as client:
        return code_of(client, "admin", {"ping": 1})


# --- logins ---------------------------------------------------------------------------------------------------------


def test_only_greetings_are_answered_before_a_login(locked: RunningServer) -> None:
    with RawClient(locked.ports["mongo"]) as raw:
        for name in ("hello", "ping", "buildInfo", "connectionStatus", "whatsmyuri"):
            assert raw.command({name: 1, "$db": "admin"})["ok"] == 1.0
        for command in (
            {"find": "c"},
            {"insert": "c", "documents": [{"_id": 1}]},
            {"listDatabases": 1, "$db": "admin"},
            {"getMore": Int64(5), "collection": "c"},
            {"createUser": "x", "pwd": "x", "roles": ["root"]},
            {"usersInfo": 1},
            {"serverStatus": 1},
        ):
            answer = raw.command(command)
            assert (answer["code"], answer["codeName"]) == (13, "Unauthorized")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256", None])
def test_both_keys_of_the_account_are_passwords(locked: RunningServer, mechanism: str | None) -> None:
    options = {} if mechanism is None else {"authMechanism": mechanism}
    for key in (KEY, SECOND_KEY):
        assert login_code(locked, ACCOUNT, key, **options) == 0
        assert login_code(locked, ACCOUNT, key, authSource="anything", **options) == 0
    assert login_code(locked, ACCOUNT, "wrong", **options) == 18
    assert login_code(locked, "nobody", KEY, **options) == 18


def test_unknown_users_and_wrong_passwords_get_one_answer_and_a_salt_that_stays(locked: RunningServer) -> None:
    def first(user: str) -> dict[str, Any]:
        with RawClient(locked.ports["mongo"]) as raw:
            payload = f"n,,n={user},r=abc".encode()
            return raw.command({"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload, "$db": "admin"})

    def salt(user: str) -> bytes:
        _, salt, iterations = first(user)["payload"].split(b",")
        return bytes(salt + iterations)

    for user in (ACCOUNT, "nobody"):
        assert salt(user) == salt(user)
    assert salt("nobody") != salt("nobody-else")
    with RawClient(locked.ports["mongo"]) as raw:
        answer = raw.command({"saslContinue": 1, "conversationId": 1, "payload": b"", "$db": "admin"})
        assert answer["code"] == 17


def test_a_login_ends_with_logout(locked: RunningServer, owner: Client) -> None:
    with logged_in(locked, ACCOUNT, KEY, maxPoolSize=1) as client:
        assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
        client.admin.command("logout")
        assert code_of(client, "shop", {"find": "c"}) == 13
    assert owner.admin.command("getCmdLineOpts")["parsed"]["security"]["authorization"] == "enabled"


# --- users ----------------------------------------------------------------------------------------------------------


def test_users_may_do_what_their_roles_say(locked: RunningServer, owner: Client, shop: str) -> None:
    owner[shop].command("createUser", "reader", pwd="r", roles=["read"])
    owner[shop].command("createUser", "writer", pwd="w", roles=["readWrite"])
    owner[shop].command("createUser", "keeper", pwd="k", roles=["dbAdmin"])
    table = {
        # Allowed to the reader, the writer and the administrator of the database.
        "find": ({"find": "orders"}, "rw"),
        "count": ({"count": "orders"}, "rw"),
        "aggregate": ({"aggregate": "orders", "pipeline": [], "cursor": {}}, "rw"),
        "out": ({"aggregate": "orders", "pipeline": [{"$out": "copy"}], "cursor": {}}, "w"),
        "insert": ({"insert": "orders", "documents": [{}]}, "w"),
        "update": ({"update": "orders", "updates": [{"q": {}, "u": {"$set": {"x": 1}}}]}, "w"),
        "delete": ({"delete": "orders", "deletes": [{"q": {"_id": -1}, "limit": 1}]}, "w"),
        "createIndexes": ({"createIndexes": "orders", "indexes": [{"key": {"x": 1}, "name": "x"}]}, "wk"),
        "listCollections": ({"listCollections": 1}, "rwk"),
        "collMod": ({"collMod": "orders"}, "k"),
        "createUser": ({"createUser": "x", "pwd": "x", "roles": []}, ""),
        "explain": ({"explain": {"find": "orders"}}, "rw"),
    }
    clients = [("r", "reader"), ("w", "writer"), ("k", "keeper")]
    for letter, user in clients:
        with logged_in(locked, user, letter, authSource=shop) as client:
            for name, (command, allowed) in table.items():
                assert (code_of(client, shop, command) == 13) is (letter not in allowed), (user, name)
            assert code_of(client, "other", {"find": "orders"}) == 13
            assert code_of(client, "admin", {"serverStatus": 1}) == 13
            assert code_of(client, "admin", {"listDatabases": 1}) == 0
            shown = client.admin.command("connectionStatus", showPrivileges=True)["authInfo"]
            assert shown["authenticatedUsers"] == [{"user": user, "db": shop}]
            assert shown["authenticatedUserPrivileges"]


def test_a_user_does_not_reach_another_database_by_detours(locked: RunningServer, owner: Client, shop: str) -> None:
    owner["secret"].things.insert_one({"_id": 1})
    owner[shop].command("createUser", "writer", pwd="w", roles=["readWrite", "dbAdmin"])
    with logged_in(locked, "writer", "w", authSource=shop) as client:
        secret: dict[str, Any] = {"db": "secret", "coll": "things"}
        stages: list[dict[str, Any]] = [
            {"$out": secret},
            {"$merge": {"into": secret}},
            {"$lookup": {"from": secret, "pipeline": [], "as": "x"}},
            {"$facet": {"a": [{"$lookup": {"from": secret, "pipeline": [], "as": "x"}}]}},
        ]
        for stage in stages:
            assert code_of(client, shop, {"aggregate": "orders", "pipeline": [stage], "cursor": {}}) == 13
        assert code_of(client, "admin", {"renameCollection": "secret.things", "to": f"{shop}.mine"}) == 13
        assert code_of(client, "admin", {"renameCollection": f"{shop}.orders", "to": "secret.mine"}) == 13
        assert code_of(client, "secret", {"explain": {"find": "things"}}) == 13
        with pytest.raises(ClientBulkWriteException) as refused:
            client.bulk_write([InsertOne(namespace="secret.things", document={"_id": 2})])
        assert getattr(refused.value.error, "code", 0) == 13
        assert client.bulk_write([InsertOne(namespace=f"{shop}.orders", document={})]).inserted_count == 1
        assert "secret" not in client.list_database_names()
        assert shop in client.list_database_names()
    assert owner["secret"].things.count_documents({}) == 1
    owner.drop_database("secret")


def test_users_hand_on_only_roles_of_their_databases(locked: RunningServer, owner: Client, shop: str) -> None:
    owner[shop].command("createUser", "boss", pwd="b", roles=["dbOwner"])
    with logged_in(locked, "boss", "b", authSource=shop) as client:
        assert code_of(client, shop, {"createUser": "helper", "pwd": "h", "roles": ["readWrite"]}) == 0
        assert code_of(client, shop, {"grantRolesToUser": "boss", "roles": [{"role": "root", "db": "admin"}]}) == 13
        assert code_of(client, "admin", {"createUser": "x", "pwd": "x", "roles": []}) == 13
        assert code_of(client, shop, {"usersInfo": 1}) == 0
        assert code_of(client, shop, {"usersInfo": {"forAllDBs": True}}) in (0, 13)
        assert code_of(client, "admin", {"usersInfo": 1}) == 13


def test_changes_of_roles_hold_for_connections_that_are_open(locked: RunningServer, owner: Client, shop: str) -> None:
    owner[shop].command("createUser", "app", pwd="old", roles=["read"])
    with logged_in(locked, "app", "old", authSource=shop) as client:
        assert code_of(client, shop, {"insert": "orders", "documents": [{}]}) == 13
        owner[shop].command("grantRolesToUser", "app", roles=["readWrite"])
        assert wait_until(lambda: code_of(client, shop, {"insert": "orders", "documents": [{}]}) == 0)
        owner[shop].command("revokeRolesFromUser", "app", roles=["readWrite", "read"])
        assert wait_until(lambda: code_of(client, shop, {"find": "orders"}) == 13)
        owner[shop].command("updateUser", "app", pwd="new", roles=["read"])
        assert wait_until(lambda: code_of(client, shop, {"find": "orders"}) == 0)
        owner[shop].command("dropUser", "app")
        assert wait_until(lambda: code_of(client, shop, {"find": "orders"}) == 13)
    assert login_code(locked, "app", "new", authSource=shop) == 18


def test_a_user_logs_in_with_its_mechanisms_and_at_its_database(
    locked: RunningServer, owner: Client, shop: str
) -> None:
    owner[shop].command("createUser", "old", pwd="ⅸ", roles=[], mechanisms=["SCRAM-SHA-1"])
    owner[shop].command("createUser", "new", pwd="Ⅸ", roles=[], mechanisms=["SCRAM-SHA-256"])
    assert login_code(locked, "old", "ⅸ", authSource=shop) == 0
    assert login_code(locked, "old", "ⅸ", authSource=shop, authMechanism="SCRAM-SHA-256") == 18
    assert login_code(locked, "new", "IX", authSource=shop) == 0
    assert login_code(locked, "new", "IX", authSource=shop, authMechanism="SCRAM-SHA-1") == 18
    assert login_code(locked, "new", "IX", authSource="admin") == 18
    shown = owner[shop].command("usersInfo", ["old", "new", "nobody"])["users"]
    assert [user["mechanisms"] for user in shown] == [["SCRAM-SHA-1"], ["SCRAM-SHA-256"]]
    assert "credentials" not in shown[0]


def test_commands_for_users_refuse_what_is_wrong(owner: Client, shop: str) -> None:
    owner[shop].command("createUser", "app", pwd="p", roles=[])
    for command, code in (
        ({"createUser": "app", "pwd": "p", "roles": []}, 51003),
        ({"createUser": "", "pwd": "p", "roles": []}, 2),
        ({"createUser": 5, "pwd": "p", "roles": []}, 14),
        ({"createUser": "x", "pwd": "", "roles": []}, 2),
        ({"createUser": "x", "pwd": 5, "roles": []}, 14),
        ({"createUser": "x", "roles": []}, 2),
        ({"createUser": "x", "pwd": "p"}, 40414),
        ({"createUser": "x", "pwd": "p", "roles": ["nonsense"]}, 31),
        ({"createUser": "x", "pwd": "p", "roles": ["root"]}, 31),
        ({"createUser": "x", "pwd": "p", "roles": [5]}, 2),
        ({"createUser": "x", "pwd": "p", "roles": [{"role": "read"}]}, 4),
        ({"createUser": "x", "pwd": "p", "roles": [], "mechanisms": ["MD5"]}, 2),
        ({"createUser": "x", "pwd": "p", "roles": [], "digestPassword": False}, 2),
        ({"createUser": "x", "pwd": "\x07", "roles": []}, 2),
        ({"updateUser": "app"}, 2),
        ({"updateUser": "nobody", "pwd": "p"}, 11),
        ({"dropUser": "nobody"}, 11),
        ({"grantRolesToUser": "nobody", "roles": ["read"]}, 11),
        ({"grantRolesToUser": "app", "roles": ["nonsense"]}, 31),
        ({"usersInfo": [5]}, 2),
        ({"createRole": "read", "privileges": [], "roles": []}, 2),
        ({"createRole": "r", "privileges": [{"resource": {}, "actions": ["find"]}], "roles": []}, 9),
        ({"dropRole": "nonsense"}, 31),
        ({"updateRole": "nonsense", "roles": []}, 31),
    ):
        assert code_of(owner, shop, command) == code, command


def test_roles_of_ones_own_limit_users_to_collections_and_actions(
    locked: RunningServer, owner: Client, shop: str
) -> None:
    orders: dict[str, Any] = {"db": shop, "collection": "orders"}
    owner[shop].command("createRole", "clerk", privileges=[{"resource": orders, "actions": ["find"]}], roles=[])
    owner[shop].command("createUser", "app", pwd="p", roles=["clerk"])
    with logged_in(locked, "app", "p", authSource=shop) as client:
        assert code_of(client, shop, {"find": "orders"}) == 0
        assert code_of(client, shop, {"find": "others"}) == 13
        assert code_of(client, shop, {"insert": "orders", "documents": [{}]}) == 13
        more = [{"resource": orders, "actions": ["insert"]}]
        owner[shop].command("grantPrivilegesToRole", "clerk", privileges=more)
        assert wait_until(lambda: code_of(client, shop, {"insert": "orders", "documents": [{}]}) == 0)
    assert code_of(owner, shop, {"createRole": "boss", "privileges": [], "roles": ["clerk"]}) == 0
    assert code_of(owner, shop, {"grantRolesToRole": "clerk", "roles": ["boss"]}) == 34
    shown = owner[shop].command("rolesInfo", "boss", showPrivileges=True)["roles"][0]
    assert shown["inheritedRoles"] == [{"role": "clerk", "db": shop}]
    assert shown["inheritedPrivileges"] == [{"resource": orders, "actions": ["find", "insert"]}]
    owner[shop].command("dropRole", "clerk")
    assert owner[shop].command("usersInfo", "app")["users"][0]["roles"] == []


def test_a_cursor_belongs_to_its_user_its_session_and_its_namespace(
    locked: RunningServer, owner: Client, shop: str
) -> None:
    owner[shop].command("createUser", "other", pwd="o", roles=["read"])
    with owner.start_session() as session, owner.start_session() as second:
        opened = owner[shop].command({"find": "orders", "batchSize": 2}, session=session)
        more = {"getMore": Int64(opened["cursor"]["id"]), "collection": "orders"}
        with logged_in(locked, "other", "o", authSource=shop) as client:
            assert code_of(client, shop, more) in (13, 43)
            killed = client[shop].command({"killCursors": "orders", "cursors": [more["getMore"]]})
            assert killed["cursorsKilled"] == []
        with pytest.raises(OperationFailure) as refused:
            owner[shop].command(more, session=second)
        assert refused.value.code in (13, 50738)
        with pytest.raises(OperationFailure) as refused:
            owner[shop].command({**more, "collection": "users"}, session=session)
        assert refused.value.code == 13
        assert len(owner[shop].command(more, session=session)["cursor"]["nextBatch"]) == 298


# --- restarts, processes, accounts ----------------------------------------------------------------------------------


def test_users_survive_a_restart_and_no_file_has_their_passwords(tmp_path: Path) -> None:
    data, secret = tmp_path / "data", "a password that is nowhere"
    with running_server(data, "--key", KEY, doors=("mongo",), embedded=True) as server:
        # The client ends first: at its end it would look for a server that is gone.
        with logged_in(server, ACCOUNT, KEY) as client:
            client.shop.command("createUser", "app", pwd=secret, roles=["readWrite"])
        server.kill()
    assert not any(secret.encode() in file.read_bytes() for file in data.rglob("*") if file.is_file())
    with running_server(data, "--key", KEY, doors=("mongo",), embedded=True) as server:
        assert login_code(server, "app", secret, authSource="shop") == 0


def test_all_workers_know_a_user(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "data", "--key", KEY, "--workers", "2", doors=("mongo",), alone=True) as server,
        logged_in(server, ACCOUNT, KEY) as client,
    ):
        client.shop.command("createUser", "app", pwd="p", roles=["read"])
        for _ in range(8):
            assert login_code(server, "app", "p", authSource="shop", directConnection=True) == 0


def test_an_account_made_by_command_has_data_and_users_of_its_own(locked: RunningServer, owner: Client) -> None:
    name = f"blue{uuid.uuid4().hex[:8]}"
    variables = {**environment(), "ASTERISM_KEY": KEY}
    made = subprocess.run(
        [*PROGRAM, "accounts", "create", name, "--format", "json", "--endpoint", locked.endpoint],
        capture_output=True, text=True, env=variables, timeout=WAIT_SECONDS_MAX, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    with logged_in(locked, name, json.loads(made.stdout)["primary"]) as client:
        client.blue.things.insert_one({"_id": 1})
        client.blue.command("createUser", "app", pwd="p", roles=["read"])
        assert client.list_database_names() == ["blue"]
    assert "blue" not in owner.list_database_names()
    assert login_code(locked, "app", "p", authSource="blue") == 18
