"""Names of blobs with any character, through the official clients: created, listed, read and deleted."""

from __future__ import annotations

import asyncio

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.clients.blob_server import BlobServer

NAME_CHARACTERS_MAX = 1024
LONG = 300


def fits(name: str) -> bool:
    """Return whether a name is legal, and one that the libraries below the clients leave as it is: they resolve the
    segments `.` and `..`, and cut the name at its end."""
    units = len(name.encode("utf-16-le")) // 2
    return units <= NAME_CHARACTERS_MAX and not {".", ".."} & set(name.split("/")) and name.strip("/ ") == name


characters = st.one_of(
    st.sampled_from("%+?#&=:;,'\"<>()[]{}|^`~!@$*/. \\-_"),
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufffe\uffff"),
)
names = st.one_of(
    st.text(characters, min_size=1, max_size=40),
    st.text(characters, min_size=LONG, max_size=LONG + 50),
).filter(fits)
of_any_name = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def box(blobs: BlobServer) -> ContainerClient:
    return blobs.new_container()


@of_any_name
@example("%2F%2e%00%zz")
@example("a+b c%20d")
@example("?comp=list#fragment&sig=x")
@example("'\"<Name>&amp;]]>")
@example("..hidden/...three/x..")
@example("a//b///c")
@example("é\U0001f600\u0301/e\u0301")
@example("\ue000\U0010ffff")
@example("\x01\x1f\x7f\r\n\t.")
@example("x" * NAME_CHARACTERS_MAX)
@example("\U0001f600" * (NAME_CHARACTERS_MAX // 2))
@example("n" * 227 + "é" + "n" * 10)
@given(name=names)
def test_a_name_is_what_the_client_sent(box: ContainerClient, name: str) -> None:
    content = name.encode()
    blob = box.upload_blob(name, content)
    try:
        assert [found.name for found in box.list_blobs()] == [name]
        assert [found.name for found in box.list_blobs(name_starts_with=name)] == [name]
        assert blob.download_blob().readall() == content
        assert blob.get_blob_properties().name == name
        assert blob.create_snapshot()["snapshot"]
    finally:
        blob.delete_blob(delete_snapshots="include")
    with pytest.raises(ResourceNotFoundError):
        blob.get_blob_properties()


@of_any_name
@example("a+b c%20d?#")
@example("x" * NAME_CHARACTERS_MAX)
@given(name=names)
def test_both_clients_have_the_same_name_for_a_blob(blobs: BlobServer, box: ContainerClient, name: str) -> None:
    async def put_and_list() -> list[str]:
        async with blobs.aio_service() as service:
            container = service.get_container_client(box.container_name)
            blob = await container.upload_blob(name, b"data")
            assert await (await blob.download_blob()).readall() == b"data"
            return [found.name async for found in container.list_blobs()]

    try:
        assert asyncio.run(put_and_list()) == [name]
        assert box.download_blob(name).readall() == b"data"
    finally:
        box.delete_blob(name)


@of_any_name
@given(wanted=st.sets(st.text(characters, min_size=1, max_size=12).filter(fits), min_size=2, max_size=8))
def test_blobs_are_listed_in_one_order_whatever_their_names(box: ContainerClient, wanted: set[str]) -> None:
    for name in wanted:
        box.upload_blob(name, b"")
    try:
        listed = [found.name for found in box.list_blobs(results_per_page=1)]
        assert len(listed) == len(wanted)
        assert set(listed) == wanted
        assert [found.name for page in box.list_blobs(results_per_page=3).by_page() for found in page] == listed
    finally:
        for name in wanted:
            box.delete_blob(name)
