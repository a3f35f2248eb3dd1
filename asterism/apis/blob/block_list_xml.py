"""The XML of block lists: of a commit, and of the answer to Get Block List."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

from asterism.apis.blob.refused_input import RefusedInput, invalid_document
from asterism.limits import MIB

BLOCKS_MAX: Final = 50_000
BLOCK_ID_BYTES_MAX: Final = 64
# Base64 of the longest id.
_BLOCK_ID_CHARACTERS_MAX: Final = 88
# 50,000 entries with the longest ids take 5.8 million bytes; the rest is room for line breaks and blanks.
BLOCK_LIST_BYTES_MAX: Final = 8 * MIB
# An answer is written in pieces, since 150,000 blocks may be listed: some 100 KiB each.
_BLOCKS_IN_PIECE: Final = 1000


class BlockSource(Enum):
    """The list in which a commit looks for a block; LATEST looks among the uncommitted ones first."""

    LATEST = "Latest"
    COMMITTED = "Committed"
    UNCOMMITTED = "Uncommitted"


class BlockEntry(NamedTuple):
    """One entry of a commit; the id is in Base64, as it was sent."""

    source: BlockSource
    block_id: str


class ListedBlock(NamedTuple):
    """One block of an answer."""

    block_id: str
    size_bytes: int


_SOURCES: Final = {source.value: source for source in BlockSource}


def check_block_id(block_id: str) -> None:
    """Raise RefusedInput unless `block_id` is Base64 of 1 to 64 bytes."""
    if 0 < len(block_id) <= _BLOCK_ID_CHARACTERS_MAX:
        try:
            if 0 < len(base64.b64decode(block_id, validate=True)) <= BLOCK_ID_BYTES_MAX:
                return
        except (binascii.Error, ValueError):
            pass
    raise RefusedInput(
        400,
        "InvalidBlockId",
        f"The specified block ID is invalid. The block ID must be Base64-encoded, of 1 to {BLOCK_ID_BYTES_MAX} bytes.",
    )


class BlockListReader:
    """The entries of a commit's body, in their order, out of pieces of any length."""

    def __init__(self) -> None:
        self._entries: list[BlockEntry] = []
        self._open: list[str] = []
        self._text: list[str] = []
        self._text_characters = 0
        self._bytes_read = 0
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser = parser

    def feed(self, piece: bytes) -> None:
        self._bytes_read += len(piece)
        if self._bytes_read > BLOCK_LIST_BYTES_MAX:
            raise RefusedInput(
                413, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit."
            )
        self._parse(piece, is_final=False)

    def finish(self) -> list[BlockEntry]:
        """Return the entries, once the whole body was fed."""
        self._parse(b"", is_final=True)
        return self._entries

    def _parse(self, piece: bytes, *, is_final: bool) -> None:
        try:
            self._parser.Parse(piece, is_final)
        except (expat.ExpatError, ValueError, LookupError):
            raise invalid_document() from None

    def _start(self, tag: str, _: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        depth = len(self._open)
        if (depth == 0 and name != "BlockList") or (depth == 1 and name not in _SOURCES) or depth > 1:
            raise invalid_document("A block list is a BlockList with elements Latest, Committed and Uncommitted.")
        self._open.append(name)
        self._text.clear()
        self._text_characters = 0

    def _end(self, _: str) -> None:
        name = self._open.pop()
        text = "".join(self._text).strip()
        self._text.clear()
        if not self._open:
            return
        if len(self._entries) == BLOCKS_MAX:
            raise RefusedInput(
                400, "BlockListTooLong", f"The block list may not contain more than {BLOCKS_MAX:,} blocks."
            )
        check_block_id(text)
        self._entries.append(BlockEntry(_SOURCES[name], text))

    def _characters(self, text: str) -> None:
        # Blanks between entries are not an entry's.
        if len(self._open) == 2:
            self._text_characters += len(text)
            if self._text_characters > BLOCK_LIST_BYTES_MAX:
                raise invalid_document()
            self._text.append(text)
        elif text.strip():
            raise invalid_document("A block list has no text outside of its entries.")

    def _refuse_doctype(self, *_: object) -> None:
        """Refuse a DTD: with it, a few bytes can stand for gigabytes."""
        raise invalid_document("The document must not have a DTD.")


def read_block_list(body: bytes) -> list[BlockEntry]:
    reader = BlockListReader()
    reader.feed(body)
    return reader.finish()


def block_list_pieces(
    *, committed: Iterable[ListedBlock] | None, uncommitted: Iterable[ListedBlock] | None
) -> Iterator[str]:
    """Yield the answer to Get Block List; a list that was not asked for is None and left out."""
    yield '<?xml version="1.0" encoding="utf-8"?><BlockList>'
    for name, blocks in (("CommittedBlocks", committed), ("UncommittedBlocks", uncommitted)):
        if blocks is not None:
            yield f"<{name}>"
            rest = iter(blocks)
            while piece := "".join(map(_block_xml, islice(rest, _BLOCKS_IN_PIECE))):
                yield piece
            yield f"</{name}>"
    yield "</BlockList>"


def _block_xml(block: ListedBlock) -> str:
    return f"<Block><Name>{escape(block.block_id)}</Name><Size>{block.size_bytes}</Size></Block>"
