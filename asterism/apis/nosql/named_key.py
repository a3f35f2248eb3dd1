"""The partition key that a request names in its header."""

from __future__ import annotations

from asterism.apis.http import Request
from asterism.apis.nosql import headers
from asterism.documents.container import Container
from asterism.errors import MalformedRequest
from asterism.partitioning.partition_key import PartitionKey, parse_header


def named_key(container: Container, request: Request) -> PartitionKey | None:
    text = request.headers.get(headers.PARTITION_KEY)
    return None if text is None else parse_header(text, container.record.definition)


def required_key(container: Container, request: Request, *, refusal: str) -> PartitionKey:
    """Only in a container without a partition key may a request leave it out."""
    key = named_key(container, request)
    if key is not None:
        return key
    if container.record.definition.system_key:
        return ()
    raise MalformedRequest(reason=refusal)
