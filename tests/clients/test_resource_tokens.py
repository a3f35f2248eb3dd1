"""The official client with a permission's token, or a token of Entra ID, in the place of an account key."""

from __future__ import annotations

import base64
import json
import time
import uuid
from pathlib import Path

import pytest
from azure.core.credentials import AccessToken
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from azure.cosmos import aio as cosmos_aio
from azure.cosmos.exceptions import CosmosHttpResponseError

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from tests.support.server import RunningServer, running_server


def token_for(database: DatabaseProxy, container: ContainerProxy, mode: str, **more: object) -> dict[str, str]:
    """A new user's token for the container, as clients take it: by the link of the resource."""
    user = database.create_user({"id": f"user-{uuid.uuid4()}"})
    link = f"dbs/{database.id}/colls/{container.id}"
    permission = user.create_permission({"id": "p", "permissionMode": mode, "resource": link, **more})
    return {link: permission.properties["_token"]}


def test_a_token_for_all_reads_and_writes_items(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    with CosmosClient(server.endpoint, token_for(database, container, "All")) as limited:
        things = limited.get_database_client(database.id).get_container_client(container.id)
        things.create_item({"id": "a", "pk": "x"})
        assert things.read_item("a", "x")["id"] == "a"
        assert [item["id"] for item in things.query_items("SELECT * FROM c", enable_cross_partition_query=True)] == [
            "a"
        ]
        assert len(list(things.query_items_change_feed(start_time="Beginning"))) == 1


def test_a_token_for_an_item_by_its_self_link_opens_it_by_name(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    item = container.create_item({"id": "a", "pk": "x"})
    container.create_item({"id": "b", "pk": "x"})
    user = database.create_user({"id": f"user-{uuid.uuid4()}"})
    permission = user.create_permission({"id": "p", "permissionMode": "All", "resource": item["_self"]})
    by_name = {f"dbs/{database.id}/colls/{container.id}/docs/a": permission.properties["_token"]}
    with CosmosClient(server.endpoint, by_name) as limited:
        things = limited.get_database_client(database.id).get_container_client(container.id)
        assert things.read_item("a", "x") == item
        with pytest.raises(CosmosHttpResponseError) as refused:
            things.read_item("b", "x")
        assert refused.value.status_code in (401, 403)
        user.delete_permission("p")
        with pytest.raises(CosmosHttpResponseError) as ended:
            things.read_item("a", "x")
    assert ended.value.status_code == 403


def test_a_read_only_key_cannot_get_tokens(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    token_for(database, container, "All")
    with server.client(key=derive_readonly_key(WELL_KNOWN_EMULATOR_KEY)) as reader:
        (user,) = reader.get_database_client(database.id).list_users()
        limited = reader.get_database_client(database.id).get_user_client(user["id"])
        for ask in (lambda: list(limited.list_permissions()), lambda: limited.get_permission("p")):
            with pytest.raises(CosmosHttpResponseError) as refused:
                ask()
            assert refused.value.status_code == 403


def test_a_token_for_reading_writes_nothing(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    container.create_item({"id": "a", "pk": "x"})
    with CosmosClient(server.endpoint, token_for(database, container, "Read")) as limited:
        things = limited.get_database_client(database.id).get_container_client(container.id)
        assert things.read_item("a", "x")["id"] == "a"
        with pytest.raises(CosmosHttpResponseError) as refused:
            things.delete_item("a", "x")
    assert refused.value.status_code == 403


@pytest.mark.parametrize("key", ["x", 1, True])
def test_a_token_for_one_partition_key_reads_the_change_feed_of_that_key(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy, key: object
) -> None:
    container.create_item({"id": "own", "pk": key})
    container.create_item({"id": "other", "pk": "y"})
    with CosmosClient(server.endpoint, token_for(database, container, "Read", resourcePartitionKey=[key])) as limited:
        things = limited.get_database_client(database.id).get_container_client(container.id)
        read = things.query_items_change_feed
        assert [item["id"] for item in read(start_time="Beginning", partition_key=key)] == ["own"]
        for scope in ({"partition_key": "y"}, {}):
            with pytest.raises(CosmosHttpResponseError) as refused:
                list(read(start_time="Beginning", **scope))
            assert refused.value.status_code == 403


def test_a_token_for_the_prefix_of_a_key_reads_the_change_feed_below_it(
    server: RunningServer, database: DatabaseProxy
) -> None:
    made = database.create_container("levels", PartitionKey(["/a", "/b"], kind="MultiHash"))
    for item_id, first, second in (("1", "x", "p"), ("2", "x", "q"), ("3", "y", "p")):
        made.create_item({"id": item_id, "a": first, "b": second})
    with CosmosClient(server.endpoint, token_for(database, made, "Read", resourcePartitionKey=["x"])) as limited:
        things = limited.get_database_client(database.id).get_container_client("levels")
        read = things.query_items_change_feed
        assert sorted(item["id"] for item in read(start_time="Beginning", partition_key=["x"])) == ["1", "2"]
        assert [item["id"] for item in read(start_time="Beginning", partition_key=["x", "q"])] == ["2"]
        with pytest.raises(CosmosHttpResponseError) as refused:
            list(read(start_time="Beginning", partition_key=["y"]))
        assert refused.value.status_code == 403


async def test_on_asyncio_a_token_keeps_to_its_partition_key(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    tokens = token_for(database, container, "All", resourcePartitionKey=["x"])
    async with cosmos_aio.CosmosClient(server.endpoint, tokens) as limited:
        things = limited.get_database_client(database.id).get_container_client(container.id)
        await things.create_item({"id": "a", "pk": "x"})
        with pytest.raises(CosmosHttpResponseError) as refused:
            await things.create_item({"id": "a", "pk": "y"})
    assert refused.value.status_code == 403


def test_a_request_without_credentials_is_refused(server: RunningServer) -> None:
    with pytest.raises(CosmosHttpResponseError) as refused:
        CosmosClient(server.endpoint, {})
    assert refused.value.status_code == 401


class EmulatorCredential:
    """A token of Entra ID, as the vendor's emulator accepts it."""

    def get_token(self, *scopes: str, **options: object) -> AccessToken:
        until = int(time.time()) + 3600
        texts = ('{"alg":"RS256"}', json.dumps({"exp": until}), WELL_KNOWN_EMULATOR_KEY)
        encoded = [base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in texts]
        return AccessToken(".".join(encoded), until)


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_a_token_of_entra_id_in_the_emulators_form_is_as_good_as_the_key(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--https") as server:
        client = CosmosClient(f"https://localhost:{server.port}/", EmulatorCredential())
        container = client.create_database("d").create_container("c", PartitionKey("/pk"))
        container.create_item({"id": "a", "pk": "x"})
        assert container.read_item("a", "x")["id"] == "a"
