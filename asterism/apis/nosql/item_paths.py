"""The paths of items and of their feeds, which most requests have: read once for all items of a container."""

from __future__ import annotations

from typing import Final, NamedTuple

from asterism.apis.nosql.auth import is_database_rid, signed_links

# Containers whose paths are remembered.
_CONTAINERS_MAX: Final = 10_000
_LAST_PART: Final = "docs"


class _Feed(NamedTuple):
    """The part of a path that all items of a container share: dbs/{database}/colls/{container}/docs."""

    parts: list[str]
    # The links that clients may have signed for the feed itself.
    links: list[str]
    # Clients may sign the last segment alone, as they do for resource ids.
    signs_rids: bool


class ItemPaths:
    """Reads the path of an item by its last segment alone, where its container is known; that of its feed at once."""

    __slots__ = ("_feeds",)

    def __init__(self) -> None:
        self._feeds: dict[str, _Feed] = {}

    def find(self, path: str) -> tuple[list[str], list[str]] | None:
        """Return the segments of a path and the links that clients may have signed for it; None if it is unknown.

        The same as `path.split("/")` and `signed_links`. Callers must not change them.
        """
        prefix, _, name = path.rpartition("/")
        if name == _LAST_PART and (feed := self._feeds.get(path)) is not None:
            return feed.parts, feed.links
        feed = self._feeds.get(prefix)
        if feed is None:
            return None
        return [*feed.parts, name], [name.lower(), path] if feed.signs_rids else [path]

    def remember(self, database: str, container: str) -> None:
        """Remember a container that exists, by the names in its path."""
        parts = ["dbs", database, "colls", container, _LAST_PART]
        path = "/".join(parts)
        if len(self._feeds) >= _CONTAINERS_MAX:
            self._feeds.clear()
        self._feeds[path] = _Feed(parts, signed_links(path, parts, _LAST_PART), is_database_rid(database))
