"""Block lists: read in any pieces, and written so that the official client reads them."""

from __future__ import annotations

import base64
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.blob.block_list_xml import (
    BlockEntry,
    BlockListReader,
    BlockSource,
    ListedBlock,
    block_list_pieces,
    check_block_id,
    read_block_list,
)
from asterism.apis.blob.refused_input import RefusedInput

ENTRIES = st.lists(
    st.builds(
        BlockEntry,
        st.sampled_from(BlockSource),
        st.binary(min_size=1, max_size=64).map(lambda raw: base64.b64encode(raw).decode()),
    ),
    max_size=20,
)


def written(entries: list[BlockEntry]) -> bytes:
    root = ElementTree.Element("BlockList")
    for source, block_id in entries:
        ElementTree.SubElement(root, source.value).text = block_id
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


@given(ENTRIES, st.integers(min_value=1, max_value=50))
def test_entries_keep_their_order_in_pieces_of_any_length(entries: list[BlockEntry], piece_bytes: int) -> None:
    body = written(entries)
    reader = BlockListReader()
    for start in range(0, len(body), piece_bytes):
        reader.feed(body[start : start + piece_bytes])
    assert reader.finish() == entries


def test_the_longest_list_is_read_and_a_longer_one_is_refused() -> None:
    entry = BlockEntry(BlockSource.LATEST, base64.b64encode(b"x" * 64).decode())
    assert len(read_block_list(written([entry] * 50_000))) == 50_000
    with pytest.raises(RefusedInput) as caught:
        read_block_list(written([entry] * 50_001))
    assert caught.value.code == "BlockListTooLong"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<BlockList>",
        b"<Blocks />",
        b"<BlockList><Other>YQ==</Other></BlockList>",
        b"<BlockList><Latest><b/></Latest></BlockList>",
        b"<BlockList>YQ==</BlockList>",
        b'<!DOCTYPE a [<!ENTITY b "YQ==">]><BlockList><Latest>&b;</Latest></BlockList>',
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a><BlockList/>'.encode("utf-16"),
        b'<?xml version="1.0" encoding="none"?><BlockList/>',
    ],
)
def test_other_documents_are_refused(body: bytes) -> None:
    with pytest.raises(RefusedInput) as caught:
        read_block_list(body)
    assert caught.value.code == "InvalidXmlDocument"


@pytest.mark.parametrize("block_id", ["", "a", "!!!!", "YQ=", base64.b64encode(b"x" * 65).decode(), "ü" * 4])
def test_ids_that_are_not_base64_of_64_bytes_are_refused(block_id: str) -> None:
    with pytest.raises(RefusedInput) as caught:
        check_block_id(block_id)
    assert caught.value.code == "InvalidBlockId"


def test_a_body_beyond_the_limit_is_refused() -> None:
    with pytest.raises(RefusedInput) as caught:
        read_block_list(b"<BlockList>" + b" " * 9_000_000)
    assert caught.value.code == "RequestBodyTooLarge"


def test_an_answer_names_the_blocks_of_both_lists() -> None:
    blocks = [ListedBlock(f"id{number}", number) for number in range(2500)]
    root = ElementTree.fromstring("".join(block_list_pieces(committed=blocks, uncommitted=[ListedBlock("u&", 7)])))
    found = [(block.findtext("Name"), block.findtext("Size")) for block in root.iterfind("CommittedBlocks/Block")]
    assert found == [(f"id{number}", str(number)) for number in range(2500)]
    assert root.findtext("UncommittedBlocks/Block/Name") == "u&"


def test_a_list_that_was_not_asked_for_is_left_out() -> None:
    assert "Uncommitted" not in "".join(block_list_pieces(committed=[], uncommitted=None))
