"""Quick queries by the official client's codecs, without a server: its request goes in, its reader reads the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from azure.storage.blob import BlobQueryError, BlobQueryReader
from azure.storage.blob._blob_client_helpers import _quick_query_options
from azure.storage.blob._generated import models
from azure.storage.blob._generated._utils.serialization import Serializer

from asterism.apis.blob.query_answer import QueryAnswer
from asterism.apis.blob.query_request import QueryRequest, read_query_request

SYNC = bytes(range(16))


@dataclass
class Asked:
    """The reader of an answer, and the errors that it has reported."""

    reader: BlobQueryReader
    errors: list[BlobQueryError] = field(default_factory=list)

    @property
    def data(self) -> bytes:
        found = self.reader.readall()
        assert isinstance(found, bytes)
        return found

    @property
    def faults(self) -> list[tuple[str, bool]]:
        self.reader.readall()
        return [(str(error.error), bool(error.is_fatal)) for error in self.errors]


def request_body(query: str, *, blob_format: Any = None, output_format: Any = None) -> bytes:
    """Return the document that the client sends."""
    options, _ = _quick_query_options(None, query, blob_format=blob_format, output_format=output_format)
    types = {name: kind for name, kind in vars(models).items() if isinstance(kind, type)}
    return bytes(ElementTree.tostring(Serializer(types).body(options["query_request"], "QueryRequest", is_xml=True)))


def answer_pieces(request: QueryRequest, blob: bytes, *, piece_bytes: int = 65_536) -> Iterator[bytes]:
    answer = QueryAnswer(request, blob_bytes=len(blob), sync=SYNC)
    yield answer.start()
    for start in range(0, len(blob), piece_bytes):
        yield answer.feed(blob[start : start + piece_bytes])
    yield answer.finish()


def ask(
    query: str, blob: bytes, *, blob_format: Any = None, output_format: Any = None, piece_bytes: int = 65_536
) -> Asked:
    """Send the query to the blob as the client's `query_blob` does."""
    request = read_query_request(request_body(query, blob_format=blob_format, output_format=output_format))
    errors: list[BlobQueryError] = []
    reader = BlobQueryReader(
        name="blob",
        container="container",
        errors=errors.append,
        record_delimiter=request.output.record_separator,
        response=filter(None, answer_pieces(request, blob, piece_bytes=piece_bytes)),
        error_cls=BlobQueryError,
    )
    return Asked(reader, errors)
