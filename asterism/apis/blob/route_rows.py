"""The form of the rows in the table of routes, and the permissions that several of them need."""

from __future__ import annotations

from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.blob.context import BlobContext
from asterism.apis.blob.kinds import BLOB, CONTAINER, SERVICE
from asterism.apis.storage.routes import READING_METHODS, Handler, Needs, Route

READ: Final = Needs(ResourceType.OBJECT, "r", "r", anonymous=True)
WRITE: Final = Needs(ResourceType.OBJECT, "w", "w")
CREATE: Final = Needs(ResourceType.OBJECT, "c|w", "c|w")
APPEND: Final = Needs(ResourceType.OBJECT, "a|w", "a|w")
TAGS: Final = Needs(ResourceType.OBJECT, "t", "t")
LEASE: Final = Needs(ResourceType.OBJECT, "w|d", "w|d")
IMMUTABILITY: Final = Needs(ResourceType.OBJECT, "i", "i")
READ_CONTAINER: Final = Needs(ResourceType.CONTAINER, "r", anonymous=True)
WRITE_CONTAINER: Final = Needs(ResourceType.CONTAINER, "w")

# Parameters that name a snapshot or a version of a blob.
_NAMING: Final = ("snapshot", "versionid")
# Operations of containers that read and change blobs only.
_ABOUT_BLOBS: Final = frozenset({"blobs", "batch"})


def row(
    kind: str,
    method: str,
    comp: str | None,
    operation: str,
    handler: Handler[BlobContext],
    needs: Needs | None,
    help: str,
    *,
    restype: str | None = None,
    body: int = 0,
    header: str | None = None,
    is_write: bool | None = None,
    takes_versions: bool = False,
) -> Route[BlobContext]:
    """`takes_versions`: the request may name a snapshot or a version of the blob, as every GET and HEAD may."""
    names_versions = takes_versions or method in READING_METHODS
    return Route(
        method,
        kind,
        operation,
        handler,
        help,
        comp=comp,
        restype=restype,
        needs=needs,
        body_bytes_max=body,
        header=header,
        is_write=is_write,
        looks_first=kind in (SERVICE, CONTAINER) and comp not in _ABOUT_BLOBS,
        refused_parameters=_NAMING if kind == BLOB and not names_versions else (),
    )
