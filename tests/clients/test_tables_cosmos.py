"""The same tables as Cosmos DB for Table presents them, with the official client in its dialect for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableClient

from tests.clients.table_server import TableServer, new_name, running_tables


@pytest.fixture
def table(tables: TableServer) -> Iterator[TableClient]:
    service = tables.cosmos_service()
    made = service.create_table(new_name("My tåble_"))
    yield made
    service.delete_table(made.table_name)


def test_entities_are_written_merged_and_found(table: TableClient) -> None:
    for key in ("a", "b", "c"):
        table.submit_transaction([("create", {"PartitionKey": key, "RowKey": str(row), "n": row}) for row in range(20)])
    table.update_entity({"PartitionKey": "b", "RowKey": "7", "s": "x"})
    assert dict(table.get_entity("b", "7")) == {"PartitionKey": "b", "RowKey": "7", "n": 7, "s": "x"}
    everything = [page_of(page) for page in table.list_entities(results_per_page=25).by_page()]
    assert [len(page) for page in everything] == [25, 25, 10]
    assert len({key for page in everything for key in page}) == 60
    found = table.query_entities("(PartitionKey eq 'c' or PartitionKey eq 'a') and n ge 18", results_per_page=1)
    assert sorted(page_of(found)) == [("a", "18"), ("a", "19"), ("c", "18"), ("c", "19")]
    ranged = table.query_entities("PartitionKey gt 'a' and RowKey eq '5'")
    assert sorted(page_of(ranged)) == [("b", "5"), ("c", "5")]


def page_of(page: object) -> list[tuple[str, str]]:
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in page]  # type: ignore[attr-defined]  # untyped


def test_tables_of_one_port_are_seen_on_the_other(tables: TableServer) -> None:
    of_storage, of_cosmos, of_cosmos_alone = new_name("SeenByBoth"), new_name("SeenToo"), new_name("seen as well_")
    by_range = tables.service().create_table(of_storage)
    by_range.create_entity({"PartitionKey": "p", "RowKey": "r"})
    seen = tables.cosmos_service().get_table_client(of_storage)
    assert len(list(seen.list_entities())) == 1
    by_hash = tables.cosmos_service().create_table(of_cosmos)
    by_hash.create_entity({"PartitionKey": "p", "RowKey": "r"})
    assert tables.service().get_table_client(of_cosmos).get_entity("p", "r")["RowKey"] == "r"
    tables.cosmos_service().create_table(of_cosmos_alone)
    for service in (tables.service(), tables.cosmos_service()):
        assert {of_storage, of_cosmos, of_cosmos_alone} <= {table.name for table in service.list_tables()}
    tables.service().delete_table(of_cosmos_alone)
    assert of_cosmos_alone not in {table.name for table in tables.cosmos_service().list_tables()}


def test_every_answer_has_a_charge(table: TableClient) -> None:
    charges: list[float] = []

    def note(response: object) -> None:
        charges.append(float(response.http_response.headers["x-ms-request-charge"]))  # type: ignore[attr-defined]

    table.create_entity({"PartitionKey": "p", "RowKey": "r"}, raw_response_hook=note)
    table.get_entity("p", "r", raw_response_hook=note)
    assert charges[0] > charges[1] >= 1.0


def test_empty_keys_are_refused(table: TableClient) -> None:
    with pytest.raises(HttpResponseError, match="cannot be empty"):
        table.create_entity({"PartitionKey": "", "RowKey": "r"})


def test_a_missing_table_is_not_found(tables: TableServer) -> None:
    with pytest.raises(ResourceNotFoundError):
        tables.cosmos_service().get_table_client("nothing").create_entity({"PartitionKey": "p", "RowKey": "r"})


def test_a_table_that_has_spent_its_request_units_answers_429_and_the_client_comes_again(tmp_path: Path) -> None:
    large = {f"s{number}": "x" * 30000 for number in range(15)}
    entities = [{"PartitionKey": "p", "RowKey": str(row), **large} for row in range(20)]

    def write_until_refused(table: TableClient) -> HttpResponseError | None:
        for entity in entities * 10:
            try:
                table.upsert_entity(entity)
            except HttpResponseError as error:
                return error
        return None

    # The shared server never throttles.
    with running_tables(tmp_path) as throttled:
        service = throttled.cosmos_service()
        refused = write_until_refused(service.create_table("Slow", headers={"x-ms-offer-throughput": "400"}))
        assert refused is not None
        assert (refused.status_code, refused.error_code) == (429, "TooManyRequests")
        assert "Retry-After" in refused.response.headers
        patient = throttled.cosmos_service(retry_total=5).get_table_client("Slow")
        patient.upsert_entity(entities[0])
