"""The static web site of an account."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from asterism.access.keys import DEVELOPMENT_ACCOUNT
from asterism.apis.transports.http import Request, Response
from tests.unit.blob_door.blob_door_at_hand import BlobDoorAtHand, Reply, open_door

PROPERTIES = (
    b"<StorageServiceProperties><StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>"
    b"<ErrorDocument404Path>errors/404.html</ErrorDocument404Path></StaticWebsite></StorageServiceProperties>"
)


async def browse(
    at_hand: BlobDoorAtHand, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
) -> Reply:
    host = f"{DEVELOPMENT_ACCOUNT}.web.localhost:10000"
    request = Request(method, path, "", dict(headers or {}), b"", "http", host, client_address="127.0.0.1:50000")
    answer = await at_hand.door.answer(request)
    if isinstance(answer, Response):
        return Reply(answer.status, dict(answer.headers), answer.body)
    return Reply(answer.status, dict(answer.headers), b"".join([piece async for piece in answer.chunks]))


@asynccontextmanager
async def open_site() -> AsyncIterator[BlobDoorAtHand]:
    async with open_door() as at_hand:
        await at_hand.make_container("$web")
        for name in ("index.html", "docs/index.html", "errors/404.html", "app.js"):
            await at_hand.put(f"$web/{name}", name.encode(), {"x-ms-blob-content-type": "text/html"})
        assert (await at_hand.send("PUT", "?restype=service&comp=properties", PROPERTIES)).status == 202
        yield at_hand


async def test_pages_are_read_without_credentials() -> None:
    async with open_site() as at_hand:
        page = await browse(at_hand, "/app.js")
        assert (page.status, page.body, page.headers["content-type"]) == (200, b"app.js", "text/html")


async def test_folders_have_an_index_document() -> None:
    async with open_site() as at_hand:
        assert (await browse(at_hand, "/")).body == b"index.html"
        assert (await browse(at_hand, "/docs/")).body == b"docs/index.html"
        assert (await browse(at_hand, "/docs")).body == b"docs/index.html"


async def test_a_missing_page_is_the_error_document() -> None:
    async with open_site() as at_hand:
        page = await browse(at_hand, "/nowhere/else.html")
        assert (page.status, page.body) == (404, b"errors/404.html")


@pytest.mark.parametrize(
    "conditions",
    [
        {"if-none-match": "*"},
        {"if-match": '"0x1"'},
        {"if-modified-since": "Fri, 31 Dec 2100 00:00:00 GMT"},
        {"if-unmodified-since": "Mon, 01 Jan 1990 00:00:00 GMT"},
    ],
)
async def test_conditions_are_on_the_page_of_the_path_and_not_on_the_error_document(conditions: dict[str, str]) -> None:
    async with open_site() as at_hand:
        missing = await browse(at_hand, "/nowhere/else.html", headers=conditions)
        assert (missing.status, missing.body) == (404, b"errors/404.html")
        for path in ("/app.js", "/docs/"):
            assert (await browse(at_hand, path, headers=conditions)).status in (304, 412)


async def test_a_head_has_the_length_and_no_body() -> None:
    async with open_site() as at_hand:
        page = await browse(at_hand, "/app.js", "HEAD")
        assert (page.status, page.headers["content-length"], page.body) == (200, "6", b"")


async def test_a_site_that_is_not_enabled_is_not_found() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("$web")
        await at_hand.put("$web/index.html", b"hello")
        assert (await browse(at_hand, "/index.html")).outcome == (404, "WebsiteDisabled")


async def test_only_reading_is_possible() -> None:
    async with open_site() as at_hand:
        assert (await browse(at_hand, "/app.js", "DELETE")).status == 405
