"""Metadata of queues, containers and blobs: the headers `x-ms-meta-…` of a request, and those of an answer.

HTTP names are alike in any case, and the listener hands them over in lower case, so names are kept that way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from asterism.apis.storage.headers import METADATA_PREFIX as PREFIX
from asterism.apis.storage.refusals import Refusal
from asterism.apis.storage.xml_text import node, text_leaf, xml_safe
from asterism.apis.transports.http import HeaderList, Headers
from asterism.limits import KIB

# The service's limit, of all names and values together.
METADATA_BYTES_MAX: Final = 8 * KIB
# An identifier of C#, in lower case.
_NAME: Final = re.compile(r"[^\W\d]\w*")


def read_metadata(given: Headers) -> dict[str, str]:
    """Return the metadata of a request, by name, sorted."""
    names = sorted({name for name in given.keys() if name.startswith(PREFIX)})  # noqa: SIM118 - a protocol
    metadata: dict[str, str] = {}
    size = 0
    for header in names:
        # The listener has no value for bytes beyond ASCII, which the service refuses as well.
        name, value = header[len(PREFIX) :], given.get(header)
        if not name:
            raise Refusal(400, "EmptyMetadataKey", "The key for one of the metadata key-value pairs is empty.")
        if value is None or not _NAME.fullmatch(name):
            raise Refusal(
                400,
                "InvalidMetadata",
                "The metadata specified is invalid. It has characters that are not permitted.",
                fields=(("HeaderName", header[:256]),),
            )
        metadata[name] = value.strip()
        size += len(name) + len(metadata[name].encode("utf-8", "replace"))
    if size > METADATA_BYTES_MAX:
        raise Refusal(
            400,
            "MetadataTooLarge",
            "The metadata specified exceeds the maximum permissible limit (8KB).",
            fields=(("MaxLimit", str(METADATA_BYTES_MAX)),),
        )
    return metadata


def metadata_headers(metadata: Mapping[str, str]) -> HeaderList:
    return [(f"{PREFIX}{name}", value) for name, value in metadata.items()]


def metadata_xml(metadata: Mapping[str, str]) -> str:
    return node("Metadata", "".join(text_leaf(name, xml_safe(value)) for name, value in metadata.items()))
