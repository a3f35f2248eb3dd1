"""The view of a query: how stored bodies become the documents that it sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from asterism.models.documents.codec import Document, DocumentCodec


@dataclass(frozen=True, slots=True)
class DocumentView:
    # Raises StoredDamage for a body that cannot be read.
    decode: Callable[[bytes], Document]
    # The same for loops over many bodies, as directly as it can be called; raises `parse_error`, and `decode` then says
    # what is wrong.
    parse: Callable[[bytes], Document]
    parse_error: type[Exception]
    # Properties that queries see in another form than the stored one, so that no index has them.
    hidden: frozenset[str] = frozenset()


def stored_view(codec: DocumentCodec) -> DocumentView:
    """Return the view of documents as they are stored."""
    return DocumentView(codec.decode, codec.parse, codec.parse_error)
