"""Static web sites: the blobs of the container `$web`, under the account's host `ACCOUNT.web.…`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asterism.apis.blob.blobs.get import answer_with_content
from asterism.apis.blob.context import BlobCall, now_ticks
from asterism.apis.blob.names import WEB_CONTAINER
from asterism.apis.blob.record_headers import blob_headers
from asterism.apis.blob.request_headers import read_conditions
from asterism.apis.storage.refusals import Refusal
from asterism.apis.storage.service_properties import stored_properties
from asterism.apis.transports.http import Answer, Response, StreamedResponse
from asterism.models.blobs.calls import CURRENT
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.record import BlobRecord

_SECTION: Final = "StaticWebsite"
_NOT_FOUND: Final = 404


async def get_page(call: BlobCall) -> Answer:
    """Return the blob that a path of the site names, the index document of a folder, or the error page."""
    properties = await stored_properties(call.door.rules.documents, call.account.name, "blob")
    site: Mapping[str, Any] = properties.get(_SECTION) or {}
    if not site.get("Enabled"):
        raise Refusal(
            _NOT_FOUND,
            "WebsiteDisabled",
            "The account has no static web site. Enable it in the properties of the account's blob service.",
        )
    container = call.context.store.find_container(call.account.name, WEB_CONTAINER)
    if container is None:
        raise _content_not_found()
    conditions = read_conditions(call.headers)
    for name in _candidates(call.resource.name, site):
        record = await _find(container, name, conditions)
        if record is not None:
            return await _answer(call, container, record)
    error_page = site.get("ErrorDocument404Path")
    # The conditions of the request are on the page that it names, not on this one.
    record = await _find(container, error_page.removeprefix("/"), NO_CONDITIONS) if error_page else None
    if record is None:
        raise _content_not_found()
    return _missing(call, container, record)


def _candidates(path: str, site: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of blobs that a path may stand for, the likeliest first."""
    is_folder = not path or path.endswith("/")
    if not is_folder:
        yield path
    index = site.get("IndexDocument")
    if index:
        yield path + index if is_folder else f"{path}/{index}"
    default = site.get("DefaultIndexDocumentPath")
    if default:
        yield default.removeprefix("/")


async def _find(container: Container, name: str, conditions: Conditions) -> BlobRecord | None:
    try:
        return await container.find(name, CURRENT, conditions)
    except BlobRefused as refused:
        if refused.failure is BlobFailure.NOT_FOUND:
            return None
        raise


async def _answer(call: BlobCall, container: Container, record: BlobRecord) -> Answer:
    if call.method != "HEAD":
        return await answer_with_content(call, container, record)
    return Response(200, [*blob_headers(record, now_ticks(call), {}), ("content-length", str(record.size))])


def _missing(call: BlobCall, container: Container, record: BlobRecord) -> Answer:
    """Return the page for what is missing: with the status that says so, and whole, whatever range was asked for."""
    answer = [*blob_headers(record, now_ticks(call), {}), ("content-length", str(record.size))]
    if call.method == "HEAD":
        return Response(_NOT_FOUND, answer)
    return StreamedResponse(_NOT_FOUND, answer, container.read(record, 0, record.size))


def _content_not_found() -> Refusal:
    return Refusal(_NOT_FOUND, "WebContentNotFound", "The requested content does not exist.")
