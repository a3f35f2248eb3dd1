"""Requests as a browser sends them for a page that tries to use the server, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.cosmos import CosmosClient
from azure.data.tables import TableCorsRule, TableServiceClient, generate_account_sas

from asterism.access.keys import DEVELOPMENT_ACCOUNT
from tests.clients.table_server import CREDENTIAL, TableServer, running_tables
from tests.support import raw

PAGE = "https://page.example"
PRIVATE_KEY = "bm90IHRoZSBlbXVsYXRvcidzIGtleQ=="
FOREIGN = [{"origin": PAGE}, {"sec_fetch_site": "cross-site"}, {"host": "rebound.example"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableServer]:
    with running_tables(tmp_path_factory.mktemp("data"), "--allowed-host", "db.example") as running:
        yield running


def answer_to(port: int, request: bytes) -> tuple[int, bytes]:
    with raw.connect(port) as connection:
        connection.sendall(request)
        answer = raw.answer_of(connection)
        return int(answer.split(b" ", 2)[1]), answer


def read_databases(headers: dict[str, str]) -> bytes:
    return raw.head("GET", "/dbs", resource_type="dbs", link="", **headers)


def read_partitions(headers: dict[str, str]) -> bytes:
    return raw.head("GET", "/_asterism/health", resource_type="asterism", link="_asterism/health", **headers)


def read_tables(headers: dict[str, str], *, verb: str = "GET") -> bytes:
    """Signed in the address, so that a page needs no header of its own."""
    token = generate_account_sas(
        CREDENTIAL,
        resource_types="sco",
        permission="rl",
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    given = {"host": "localhost", **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
    return "\r\n".join([f"{verb} /{DEVELOPMENT_ACCOUNT}/Tables?{token} HTTP/1.1", *lines, "", ""]).encode()


@pytest.mark.parametrize("headers", FOREIGN, ids=lambda headers: next(iter(headers)))
def test_with_the_public_key_no_door_answers_a_page(server: TableServer, headers: dict[str, str]) -> None:
    assert answer_to(server.running.port, read_databases(headers))[0] == 403
    assert answer_to(server.running.port, read_partitions(headers))[0] == 403
    assert answer_to(server.port, read_tables(headers))[0] == 403
    assert answer_to(server.cosmos_port, read_tables(headers))[0] == 403


@pytest.mark.parametrize(
    "headers", [{}, {"host": "db.example"}, {"origin": "http://localhost"}, {"sec_fetch_site": "none"}], ids=repr
)
def test_programs_and_the_servers_own_pages_are_answered(server: TableServer, headers: dict[str, str]) -> None:
    assert answer_to(server.running.port, read_databases(headers))[0] == 200
    assert answer_to(server.port, read_tables(headers))[0] == 200


def test_the_refusal_of_a_host_name_says_what_to_do(server: TableServer) -> None:
    _, answer = answer_to(server.running.port, read_databases({"host": "rebound.example:8081"}))
    assert b"--allowed-host rebound.example," in answer


def test_tables_answer_pages_that_the_rules_of_the_account_allow(server: TableServer) -> None:
    service = server.service()
    service.set_service_properties(cors=[TableCorsRule([PAGE], ["GET"], max_age_in_seconds=5)])
    status, answer = answer_to(server.port, read_tables({"origin": PAGE, "sec_fetch_site": "cross-site"}))
    assert (status, b"access-control-allow-origin: https://page.example" in answer) == (200, True)
    assert answer_to(server.port, read_tables({"origin": "https://other.example"}))[0] == 403
    service.set_service_properties(cors=[])
    assert answer_to(server.port, read_tables({"origin": PAGE}))[0] == 403


def test_with_a_private_key_nothing_is_refused(tmp_path: Path) -> None:
    accounts = ("--key", PRIVATE_KEY, "--table-account", f"private:{PRIVATE_KEY}")
    with running_tables(tmp_path, *accounts) as server:
        client = CosmosClient(server.running.endpoint, PRIVATE_KEY)
        client.create_database("d")
        refused = answer_to(server.running.port, read_databases({"host": "any.example", "origin": PAGE}))[0]
        # By its signature, which is made with the public key, and not for its origin.
        assert refused == 401
        endpoint = f"http://127.0.0.1:{server.port}/private"
        service = TableServiceClient(endpoint, credential=AzureNamedKeyCredential("private", PRIVATE_KEY))
        assert list(service.list_tables(headers={"Origin": PAGE, "Sec-Fetch-Site": "cross-site"})) == []
        health = b"GET /_asterism/health HTTP/1.1\r\nhost: any.example\r\norigin: https://page.example\r\n\r\n"
        assert answer_to(server.running.port, health)[0] == 200
