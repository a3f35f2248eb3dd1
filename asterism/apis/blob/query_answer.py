"""The body of a quick query's answer, while the bytes of the blob come in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from asterism.apis.blob.query_avro import AvroContainer
from asterism.apis.blob.query_request import QueryRequest
from asterism.languages.blob_sql.parser import parse_query
from asterism.languages.blob_sql.run import QueryRun, Result, ResultData, ResultFault

QUERY_CONTENT_TYPE: Final = "avro/binary"


class QueryAnswer:
    """Give it the blob in order, with `feed`, until the end or `is_finished`; send all bytes that it returns.

    Pieces of some 64 KiB keep the time of a call short.
    """

    def __init__(self, request: QueryRequest, *, blob_bytes: int, sync: bytes) -> None:
        """Compile the query; MalformedBlobQuery if it is not one."""
        self._run = QueryRun(parse_query(request.expression), source=request.source, output=request.output)
        self._avro = AvroContainer(sync)
        self._blob_bytes = blob_bytes
        self._bytes_scanned = 0

    @property
    def is_finished(self) -> bool:
        """True if the rest of the blob has no influence on the answer."""
        return self._run.is_finished

    def start(self) -> bytes:
        return self._avro.header()

    def feed(self, piece: bytes | memoryview) -> bytes:
        results = self._run.feed(piece)
        self._bytes_scanned += len(piece)
        return self._encoded(results) + self._progress() if results else b""

    def finish(self) -> bytes:
        return self._encoded(self._run.finish()) + self._progress() + self._avro.end(total_bytes=self._blob_bytes)

    def _progress(self) -> bytes:
        return self._avro.progress(bytes_scanned=self._bytes_scanned, total_bytes=self._blob_bytes)

    def _encoded(self, results: Iterable[Result]) -> bytes:
        return b"".join(map(self._encoded_one, results))

    def _encoded_one(self, result: Result) -> bytes:
        match result:
            case ResultData(data):
                return self._avro.data(data)
            case ResultFault():
                return self._avro.error(
                    is_fatal=result.is_fatal,
                    name=result.name,
                    description=result.description,
                    position=result.position,
                )
            case _:
                assert_never(result)
