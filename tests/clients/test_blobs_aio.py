"""Blobs with the official client's asyncio half, which encodes URLs in its own way and sends many requests at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobBlock
from azure.storage.blob.aio import ContainerClient

from tests.clients.blob_server import MIB, BlobServer, new_name


@pytest.fixture
async def box(blobs: BlobServer) -> AsyncIterator[ContainerClient]:
    async with blobs.aio_service() as service:
        made = await service.create_container(new_name())
        yield made
        await made.delete_container()


@pytest.mark.parametrize("name", ["it's", "a+b c", "50%25", "(x=1,y:2;@z)!*~$&", "é\U0001f600", '"', "a/b/"])
async def test_names_of_any_kind_are_found_again(box: ContainerClient, name: str) -> None:
    blob = await box.upload_blob(name, name.encode(), metadata={"a": "1"})
    assert await (await blob.download_blob()).readall() == name.encode()
    assert [found.name async for found in box.list_blobs(name_starts_with=name[0])] == [name]
    await blob.delete_blob()
    with pytest.raises(ResourceNotFoundError):
        await blob.get_blob_properties()


async def test_a_large_blob_is_moved_by_several_connections(box: ContainerClient) -> None:
    data = os.urandom(9 * MIB + 17)
    blob = await box.upload_blob("large", data, max_concurrency=4)
    assert await (await blob.download_blob(max_concurrency=4)).readall() == data


async def test_pages_are_read_one_after_the_other(box: ContainerClient) -> None:
    await asyncio.gather(*(box.upload_blob(f"{number:02}", b"") for number in range(12)))
    pages = box.list_blobs(results_per_page=5).by_page()
    assert [len([blob async for blob in page]) async for page in pages] == [5, 5, 2]


async def test_of_many_that_make_a_blob_one_succeeds(box: ContainerClient) -> None:
    results = await asyncio.gather(*(box.upload_blob("a", b"x") for _ in range(8)), return_exceptions=True)
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert sum(isinstance(result, ResourceExistsError) for result in results) == 7


async def test_blocks_of_many_connections_are_all_there(box: ContainerClient) -> None:
    blob = box.get_blob_client("blocks")
    ids = [f"{number:03}" for number in range(40)]
    await asyncio.gather(*(blob.stage_block(block_id, block_id.encode()) for block_id in ids))
    await blob.commit_block_list([BlobBlock(block_id) for block_id in ids])
    assert await (await blob.download_blob()).readall() == "".join(ids).encode()


async def test_appends_of_many_connections_are_all_there_once(box: ContainerClient) -> None:
    blob = box.get_blob_client("log")
    await blob.create_append_blob()
    await asyncio.gather(*(blob.append_block(f"{number:02};".encode()) for number in range(30)))
    lines = (await (await blob.download_blob()).readall()).decode().split(";")
    assert sorted(lines[:-1]) == [f"{number:02}" for number in range(30)]


async def test_an_error_has_the_code_of_the_service(box: ContainerClient) -> None:
    with pytest.raises(HttpResponseError) as refused:
        await box.get_blob_client("a").set_standard_blob_tier("Cool")
    assert refused.value.error_code == "BlobNotFound"
