"""Quick queries of blobs with the official client."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, ContainerClient, DelimitedJsonDialect, DelimitedTextDialect

from tests.clients.blob_server import BlobServer

PEOPLE = b"name,age\nAda,36\nGrace,85\nLinus,\n"


@pytest.fixture
def container(blobs: BlobServer) -> Iterator[ContainerClient]:
    made = blobs.service().create_container(f"query-{uuid.uuid4()}")
    yield made
    made.delete_container()


def upload(container: ContainerClient, data: bytes) -> BlobClient:
    return container.upload_blob("data", data, overwrite=True)


def test_records_of_delimited_text_are_selected(container: ContainerClient) -> None:
    blob = upload(container, PEOPLE)
    with_header = DelimitedTextDialect(has_header=True)
    reader = blob.query_blob(
        "SELECT name FROM BlobStorage WHERE age > 40", blob_format=with_header, output_format=DelimitedTextDialect()
    )
    assert reader.readall() == b"Grace\n"
    assert len(reader) == len(PEOPLE)


def test_text_becomes_json(container: ContainerClient) -> None:
    blob = upload(container, PEOPLE)
    reader = blob.query_blob(
        "SELECT name, age FROM BlobStorage",
        blob_format=DelimitedTextDialect(has_header=True),
        output_format=DelimitedJsonDialect(delimiter="\n"),
    )
    assert [json.loads(line)["name"] for line in reader.records() if line] == ["Ada", "Grace", "Linus"]


def test_json_is_aggregated(container: ContainerClient) -> None:
    lines = b"".join(json.dumps({"n": number}).encode() + b"\n" for number in range(10_000))
    reader = upload(container, lines).query_blob(
        "SELECT COUNT(*), SUM(n) FROM BlobStorage",
        blob_format=DelimitedJsonDialect(delimiter="\n"),
        output_format=DelimitedTextDialect(),
    )
    assert reader.readall() == b"10000,49995000\n"


def test_a_large_blob_is_queried_while_it_is_read(container: ContainerClient) -> None:
    blob = upload(container, b"".join(b"%d,%s\n" % (number, b"x" * 90) for number in range(30_000)))
    assert blob.query_blob("SELECT _1 FROM BlobStorage WHERE _1 = 29999").readall() == b"29999\n"
    assert blob.query_blob("SELECT _1 FROM BlobStorage LIMIT 1").readall() == b"0\n"


def test_errors_of_the_data_are_reported_to_the_client(container: ContainerClient) -> None:
    errors: list[Any] = []
    reader = upload(container, b'{"n": 1}\n{oops\n').query_blob(
        "SELECT n FROM BlobStorage", on_error=errors.append, blob_format=DelimitedJsonDialect(delimiter="\n")
    )
    reader.readall()
    assert [error.is_fatal for error in errors] == [True]


def test_a_query_that_is_none_is_refused(container: ContainerClient) -> None:
    with pytest.raises(HttpResponseError) as refused:
        upload(container, PEOPLE).query_blob("DELETE EVERYTHING")
    assert refused.value.status_code == 400
