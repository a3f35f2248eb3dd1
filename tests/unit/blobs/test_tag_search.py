"""The index of tags, against a look at every blob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.changes import SetTags
from asterism.models.blobs.container import Container
from asterism.models.blobs.layout import TAGS
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.tags_search import TagTest
from asterism.values.ordered_text import ordered_text
from tests.support.blobs import BlobWorld, put, run_blobs

WEAK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def find(container: Container, *tests: TagTest, limit: int = 1000) -> list[str]:
    names: list[str] = []
    after: str | None = None
    more = True
    while more:
        page = await container.find_by_tags(tests, after, limit)
        assert len(page.entries) <= limit
        names += [record.name for record in page.entries]
        after, more = page.next, page.next is not None
    return names


async def put_tagged(container: Container, name: str, tags: Mapping[str, str]) -> None:
    await put(container, name, b"x", NewBlob(tags=tags))


def test_a_blob_is_found_by_its_present_tags_only() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put_tagged(container, "a", {"color": "red", "size": "5"})
        await put_tagged(container, "b", {"color": "red"})
        assert await find(container, TagTest("color", "=", "red")) == ["a", "b"]
        assert await find(container, TagTest("color", "=", "red"), TagTest("size", ">", "4")) == ["a"]
        await container.change("a", SetTags({"color": "blue"}))
        assert await find(container, TagTest("color", "=", "red")) == ["b"]
        assert await find(container, TagTest("size", ">=", "0")) == []
        await container.delete("b")
        await put_tagged(container, "a", {})
        assert await find(container, TagTest("color", ">=", "")) == []
        assert await world.entries(container, TAGS) == []

    run_blobs(test)


def test_snapshots_and_versions_are_not_found() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        rules = AccountRules(versioning=True)
        await put(container, "a", b"x", NewBlob(tags={"t": "1"}), rules=rules)
        await container.snapshot("a")
        await put(container, "a", b"y", NewBlob(tags={"t": "2"}), rules=rules)
        assert await find(container, TagTest("t", "=", "1")) == []
        assert await find(container, TagTest("t", "=", "2")) == ["a"]

    run_blobs(test)


def test_values_that_are_cut_in_the_index_are_told_apart() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        long = "v" * 255
        await put_tagged(container, "a", {"t": long + "1"})
        await put_tagged(container, "b", {"t": long + "2"})
        assert await find(container, TagTest("t", "=", long + "2")) == ["b"]
        assert await find(container, TagTest("t", ">", long + "1")) == ["b"]
        assert await find(container, TagTest("t", "<", long + "2")) == ["a"]

    run_blobs(test)


def test_a_search_goes_on_over_the_ranges_of_a_container_that_was_split() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for number in range(40):
            await put_tagged(container, f"n{number:02}", {"t": str(number % 4)})
        reshaper, keyspace = world.world.reshaper, container.keyspace
        for _ in range(2):
            for partition in keyspace.record.map.ranges:
                await reshaper.finished(await reshaper.split(keyspace, partition.id))
        assert len(keyspace.record.map.ranges) == 4
        expected = [f"n{number:02}" for number in range(1, 40, 4)]
        assert await find(container, TagTest("t", "=", "1"), limit=3) == expected
        assert await find(container, TagTest("t", ">", "0"), TagTest("t", "<", "2"), limit=3) == expected

    run_blobs(test)


VALUES = st.sampled_from(["", "a", "b", "ab", "b c", "z"])
NAMES = st.sampled_from(["n", "m/1", "m/2", "x" * 300, "x" * 300 + "y"])
STEPS = st.lists(st.tuples(NAMES, st.dictionaries(st.sampled_from(["p", "q"]), VALUES)), max_size=12)
TESTS = st.lists(
    st.builds(TagTest, st.sampled_from(["p", "q"]), st.sampled_from(["=", ">", ">=", "<", "<="]), VALUES),
    min_size=1,
    max_size=3,
)


@WEAK
@given(STEPS, TESTS, st.integers(1, 4))
def test_a_search_finds_what_a_look_at_every_blob_finds(
    steps: Sequence[tuple[str, Mapping[str, str]]], tests: Sequence[TagTest], limit: int
) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for name, tags in steps:
            await put_tagged(container, name, tags)
        expected = [name for name, tags in dict(steps).items() if all(wanted.holds(tags) for wanted in tests)]
        found = await find(container, *tests, limit=limit)
        assert sorted(found) == sorted(expected)
        short = [name for name in found if len(name) < 200]
        assert short == sorted(short, key=ordered_text)

    run_blobs(test)


def test_a_search_without_a_test_is_an_error_of_the_caller() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        with pytest.raises(ValueError, match="without a test"):
            await container.find_by_tags([])

    run_blobs(test)
