"""The overlay: changes that are in the write log and not yet in the tree, laid over it by every read.

There are at most two: one that grows, and one that is being folded into the tree and changes no more. Reads look a key
up in the later first; scans put the changes between two keys in the place of what the tree has of them.

A snapshot goes on to look at an overlay that grows. For it, the value that a key had is kept before it is replaced
(`Undone`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final


class _Unchanged:
    """The value in an overlay of a key that it did not have."""


UNCHANGED: Final = _Unchanged()

# A value of the overlay; None hides a key of the tree.
Overlaid = bytes | None
# Values that an overlay had of the keys that were changed since a snapshot was opened.
Undone = dict[bytes, Overlaid | _Unchanged]
Lookup = Callable[[bytes], bytes | None]

# Changes that are folded at once: half a millisecond.
_JOINED_CHANGES_MAX = 512
# Keys that are sorted anew for a scan after a write: some ten microseconds.
_RECENT_KEYS_MAX = 1024


class Overlay:
    """The changes of a stretch of the log, group after group."""

    __slots__ = ("_fresh_keys", "_keys", "_recent_keys", "groups", "latest")

    def __init__(self) -> None:
        # In the order of the log, to be folded.
        self.groups: list[dict[bytes, Overlaid]] = []
        # All of them in one.
        self.latest: dict[bytes, Overlaid] = {}
        # The keys in order: most of them, those that came later, and those since the last scan, not in order yet. A key
        # may be there more than once.
        self._keys: list[bytes] = []
        self._recent_keys: list[bytes] = []
        self._fresh_keys: list[bytes] = []

    def add(self, group: dict[bytes, Overlaid]) -> None:
        """Take over the changes of a group."""
        self.latest.update(group)
        self._fresh_keys += group
        # Small groups are joined.
        if self.groups and len(self.groups[-1]) + len(group) <= _JOINED_CHANGES_MAX:
            self.groups[-1].update(group)
        else:
            self.groups.append(group)

    def keep_for(self, undone: Undone, group: Iterable[bytes]) -> None:
        """Keep what there is of the keys of a group that is about to be added, unless it was kept before."""
        latest = self.latest
        for key in group:
            if key not in undone:
                undone[key] = latest.get(key, UNCHANGED)

    def sorted_keys(self) -> tuple[list[bytes], list[bytes]]:
        """Return the keys in two ordered lists, which are good until the next group is added."""
        if self._fresh_keys:
            # To sort an ordered list with some keys behind it is nearly a merge.
            self._recent_keys += self._fresh_keys
            self._recent_keys.sort()
            self._fresh_keys = []
            if len(self._recent_keys) > _RECENT_KEYS_MAX:
                self._keys += self._recent_keys
                self._keys.sort()
                self._recent_keys = []
        return self._recent_keys, self._keys


@dataclass(frozen=True, slots=True)
class Layer:
    """An overlay as a reader sees it: as it is, or as it was before some of its keys were changed."""

    overlay: Overlay
    undone: Undone


_NOTHING_UNDONE: Undone = {}


def layers_of_now(overlays: Iterable[Overlay]) -> list[Layer]:
    return [Layer(overlay, _NOTHING_UNDONE) for overlay in overlays]


# --- by key -----------------------------------------------------------------------------------------------------------


def read_keys(layers: Sequence[Layer], below: Lookup, keys: Sequence[bytes]) -> list[bytes | None]:
    """Return the values of the keys in the layers, latest first, or else below them."""
    touched = [layer for layer in layers if not layer.overlay.latest.keys().isdisjoint(keys)]
    if not touched:
        return list(map(below, keys))
    return [look_up(touched, below, key) for key in keys]


def look_up(layers: Iterable[Layer], below: Lookup, key: bytes) -> bytes | None:
    """Return the value of a key in the first layer that has it, or else below them."""
    for layer in layers:
        value: Overlaid | _Unchanged = layer.overlay.latest.get(key, UNCHANGED)
        if layer.undone:
            value = layer.undone.get(key, value)
        if not isinstance(value, _Unchanged):
            return value
    return below(key)


# --- in order ---------------------------------------------------------------------------------------------------------


class _Stretch:
    """The ordered keys of a layer that a scan has still to pass, in its direction."""

    __slots__ = ("_at", "_keys", "_layer", "_reverse", "_stop", "next_key")

    def __init__(self, layer: Layer, keys: list[bytes], at: int, stop: int, *, reverse: bool) -> None:
        self._layer = layer
        self._keys = keys
        self._at = at
        self._stop = stop
        self._reverse = reverse
        self.next_key: bytes | None = None
        self._look_ahead()

    def _look_ahead(self) -> None:
        is_left = self._at < self._stop
        self.next_key = self._keys[self._stop - 1 if self._reverse else self._at] if is_left else None

    def last_of(self, count: int) -> bytes | None:
        """Return the last key of the next `count`; None if that is all there are."""
        if self._stop - self._at <= count:
            return None
        return self._keys[self._stop - count] if self._reverse else self._keys[self._at + count - 1]

    def take_to(self, bound: bytes | None) -> dict[bytes, Overlaid]:
        """Take the changes up to and with a key; all of them without one."""
        start, end = self._at, self._stop
        if self._reverse:
            if bound is not None:
                start = bisect_left(self._keys, bound, start, end)
            self._stop = start
        else:
            if bound is not None:
                end = bisect_right(self._keys, bound, start, end)
            self._at = end
        self._look_ahead()
        keys = self._keys[start:end]
        latest, undone = self._layer.overlay.latest, self._layer.undone
        if not undone or undone.keys().isdisjoint(keys):
            return dict(zip(keys, map(latest.__getitem__, keys), strict=True))
        values = [undone.get(key, latest[key]) for key in keys]
        return {key: value for key, value in zip(keys, values, strict=True) if not isinstance(value, _Unchanged)}


def _stretches(layers: Sequence[Layer], low: bytes, high: bytes, *, reverse: bool) -> list[_Stretch]:
    """Return the part of each layer from `low` up to `high`, if it has one; the earliest first, so that later changes
    are laid over earlier ones."""
    found: list[_Stretch] = []
    for layer in reversed(layers):
        for keys in layer.overlay.sorted_keys():
            at = bisect_left(keys, low)
            if at < len(keys) and keys[at] < high:
                found.append(_Stretch(layer, keys, at, bisect_left(keys, high, at), reverse=reverse))
    return found


class OverlaidEntries:
    """Entries of the tree with the changes of the layers in place, in key order or reversed.

    `stored` comes from the tree, in the same direction, and may go on beyond the bounds of the scan; the layers count
    only between them. No group may be added before the last entry is taken.
    """

    __slots__ = ("_buffer", "_is_stored_done", "_ready", "_reverse", "_stored", "_stretches")

    def __init__(
        self,
        stored: Iterator[tuple[bytes, bytes]],
        layers: Sequence[Layer],
        low: bytes,
        high: bytes,
        *,
        reverse: bool,
    ) -> None:
        self._stored = stored
        self._reverse = reverse
        self._stretches = _stretches(layers, low, high, reverse=reverse)
        self._is_stored_done = False
        self._buffer: list[tuple[bytes, bytes]] = []
        self._ready: list[tuple[bytes, bytes]] = []

    def take(self, count: int) -> list[tuple[bytes, bytes]]:
        """Return the next `count` entries, or all that are left."""
        if count and not self._buffer and not self._ready:
            stored = list(islice(self._stored, count))
            if not self._stretches or (len(stored) == count and self._is_before_changes(stored[-1][0])):
                return stored
            self._buffer = stored
            self._is_stored_done = len(stored) < count
        while len(self._ready) < count and self._step(count - len(self._ready)):
            pass
        taken, self._ready = self._ready[:count], self._ready[count:]
        return taken

    def _is_before_changes(self, key: bytes) -> bool:
        """Return True if the next change of each layer comes after this key: that is so for most of a scan."""
        for stretch in self._stretches:
            next_key = stretch.next_key
            if next_key is not None and (next_key >= key if self._reverse else next_key <= key):
                return False
        return True

    def _step(self, count: int) -> bool:
        """Merge as far as `count` entries of each source reach; False if every source is at its end."""
        buffer = self._buffer
        if len(buffer) < count and not self._is_stored_done:
            buffer += islice(self._stored, count - len(buffer))
            self._is_stored_done = len(buffer) < count
        lasts = [last for stretch in self._stretches if (last := stretch.last_of(count)) is not None]
        if not self._is_stored_done:
            lasts.append(buffer[count - 1][0])
        bound = None if not lasts else max(lasts) if self._reverse else min(lasts)
        changes: dict[bytes, Overlaid] = {}
        for stretch in self._stretches:
            changes.update(stretch.take_to(bound))
        self._stretches = [stretch for stretch in self._stretches if stretch.next_key is not None]
        end = len(buffer) if bound is None else self._count_to(bound)
        self._ready += merged(buffer[:end], changes, reverse=self._reverse) if changes else buffer[:end]
        self._buffer = buffer[end:]
        return bool(self._stretches or self._buffer or not self._is_stored_done)

    def _count_to(self, bound: bytes) -> int:
        """Return how many entries of the buffer are not beyond the bound."""
        if self._reverse:
            return sum(key >= bound for key, _ in self._buffer)
        return bisect_right(self._buffer, bound, key=_key_of)


def merged(
    stored: Iterable[tuple[bytes, bytes]], changes: Mapping[bytes, Overlaid], *, reverse: bool
) -> list[tuple[bytes, bytes]]:
    """Return stored entries with the changes of the same stretch of keys in place."""
    entries: dict[bytes, Overlaid] = dict(stored)
    entries.update(changes)
    # Keys differ, so values are never compared.
    return sorted([(key, value) for key, value in entries.items() if value is not None], reverse=reverse)


def _key_of(entry: tuple[bytes, bytes]) -> bytes:
    return entry[0]
