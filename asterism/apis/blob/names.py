"""The names of containers and blobs."""

from __future__ import annotations

import re
from typing import Final

from asterism.apis.blob.refused_input import RefusedInput

ROOT_CONTAINER: Final = "$root"
WEB_CONTAINER: Final = "$web"
LOGS_CONTAINER: Final = "$logs"
# Containers that the service makes itself; they are never made here.
SYSTEM_CONTAINERS: Final = frozenset({LOGS_CONTAINER, "$blobchangefeed"})
# Containers with a meaning of their own; their names break the rules for all others.
SPECIAL_CONTAINERS: Final = frozenset({ROOT_CONTAINER, WEB_CONTAINER}) | SYSTEM_CONTAINERS

CONTAINER_NAME_CHARACTERS_MIN: Final = 3
CONTAINER_NAME_CHARACTERS_MAX: Final = 63
BLOB_NAME_CHARACTERS_MAX: Final = 1024
# The parts of a blob's name between slashes.
BLOB_NAME_SEGMENTS_MAX: Final = 254

_CONTAINER_NAME: Final = re.compile(r"[a-z0-9](?:-?[a-z0-9])*")


def check_container_name(name: str) -> None:
    """Raise RefusedInput unless `name` can be a container's."""
    if name in SPECIAL_CONTAINERS:
        return
    if not CONTAINER_NAME_CHARACTERS_MIN <= len(name) <= CONTAINER_NAME_CHARACTERS_MAX:
        raise RefusedInput(
            400, "OutOfRangeInput", "The specified resource name length is not within the permissible limits."
        )
    if not _CONTAINER_NAME.fullmatch(name):
        raise RefusedInput(400, "InvalidResourceName", "The specified resource name contains invalid characters.")


def check_new_container_name(name: str) -> None:
    """Raise RefusedInput unless a client can make a container of this name."""
    check_container_name(name)
    if name in SYSTEM_CONTAINERS:
        raise RefusedInput(400, "InvalidResourceName", "The specified resource name is reserved for the service.")


def check_blob_name(name: str, *, container: str = "") -> None:
    """Raise RefusedInput unless `name` can be a blob's; nearly every text can."""
    if not 1 <= _utf16_length(name) <= BLOB_NAME_CHARACTERS_MAX:
        raise RefusedInput(
            400, "OutOfRangeInput", "The specified resource name length is not within the permissible limits."
        )
    if name.count("/") >= BLOB_NAME_SEGMENTS_MAX:
        raise _invalid_uri(f"The name of a blob has at most {BLOB_NAME_SEGMENTS_MAX} segments between slashes.")
    # A request for such a name would be one for a blob in another container.
    if container == ROOT_CONTAINER and "/" in name:
        raise RefusedInput(
            400, "InvalidResourceName", "The name of a blob in the root container must not contain a slash."
        )


def check_name_was_utf8(name: str) -> None:
    """Raise RefusedInput for a name that may stand for bytes that are not UTF-8: the listener decodes every such byte
    to U+FFFD, so that different names would become one."""
    if "\ufffd" in name:
        raise _invalid_uri(
            "The name of the blob is not UTF-8, or has U+FFFD and is not signed with a key of the account."
        )


def _utf16_length(text: str) -> int:
    """Return the length in the units of the service, where a character beyond U+FFFF counts twice."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)


def _invalid_uri(reason: str) -> RefusedInput:
    return RefusedInput(400, "InvalidUri", f"The requested URI does not represent any resource on the server. {reason}")
