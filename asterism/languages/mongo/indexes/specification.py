"""An index as a value: its key, its options, and the form in which `listIndexes` shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from asterism.values.bson.types import Document

IndexKind = Literal["ordered", "hashed", "wildcard", "text", "2d", "2dsphere"]

# The keys of a document, each a value for every field of the index, and whether an array stood on the way.
Keys = tuple[Sequence[tuple[Any, ...]], bool]


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index whose key and options are known to be right."""

    # As it is stored: the fields of a text index are in `weights`, and `_fts` and `_ftsx` stand for them here.
    key: Document
    name: str
    kind: IndexKind
    # All other options in their stored form, in the order in which they were given; those that are off are absent.
    options: Document
    version: int = 2
    keys_of: Callable[[Document], Keys] = field(default=lambda _: ((), False), repr=False, compare=False)

    @property
    def unique(self) -> bool:
        return bool(self.options.get("unique"))

    @property
    def sparse(self) -> bool:
        return bool(self.options.get("sparse"))

    @property
    def hidden(self) -> bool:
        return bool(self.options.get("hidden"))

    @property
    def expire_after_seconds(self) -> int | None:
        return self.options.get("expireAfterSeconds")

    @property
    def partial_filter(self) -> Document | None:
        return self.options.get("partialFilterExpression")

    @property
    def collation(self) -> Document | None:
        return self.options.get("collation")

    @property
    def wildcard_projection(self) -> Document | None:
        return self.options.get("wildcardProjection")

    @property
    def is_id_index(self) -> bool:
        return self.name == "_id_"

    def as_document(self) -> Document:
        """Return the specification as `listIndexes` shows it."""
        return {"v": self.version, "key": self.key, "name": self.name, **self.options}
