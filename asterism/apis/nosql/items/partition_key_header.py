"""The partition key that a request names in its header."""

from __future__ import annotations

from asterism.apis.nosql import headers
from asterism.apis.transports.http import Request
from asterism.errors import MalformedRequest
from asterism.models.documents.container import Container
from asterism.partitioning.partition_key import PartitionKey


def named_key(container: Container, request: Request) -> PartitionKey | None:
    text = request.headers.get(headers.PARTITION_KEY)
    return None if text is None else container.key_named(text)


def required_key(container: Container, request: Request, *, refusal: str) -> PartitionKey:
    """Return the key of a request, which may leave it out only in a container without a partition key."""
    text = request.headers.get(headers.PARTITION_KEY)
    if text is not None:
        return container.key_named(text)
    if container.record.definition.system_key:
        return ()
    raise MalformedRequest(reason=refusal)
