"""The overlay against a dictionary: changes that are not yet in the tree, laid over its entries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.storage.lmdb import overlay as overlay_module
from asterism.storage.lmdb.overlay import (
    Layer,
    Overlaid,
    OverlaidEntries,
    Overlay,
    layers_of_now,
    look_up,
    merged,
    read_keys,
)

Entries = dict[bytes, bytes]
Changes = dict[bytes, Overlaid]

# Few enough for changes to meet each other and the stored entries; some are prefixes of others.
keys = st.text("abc", max_size=3).map(str.encode)
tree = st.dictionaries(keys, st.sampled_from([b"stored", b"also stored"]), max_size=40)
changes = st.dictionaries(keys, st.none() | st.binary(max_size=2), max_size=12)
groups = st.lists(changes, max_size=12)
# Of consecutive calls; the last is repeated until nothing is left.
takes = st.lists(st.integers(0, 7), max_size=6).map(lambda sizes: [*sizes, 3])
bounds = st.tuples(keys, keys).map(sorted)
booleans = st.lists(st.booleans(), min_size=24, max_size=24)


@pytest.fixture(autouse=True, scope="module")
def small_limits() -> Iterator[None]:
    """Let a few changes reach the limits at which an overlay arranges them anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlay_module, "_RECENT_KEYS_MAX", 6)
        patch.setattr(overlay_module, "_JOINED_CHANGES_MAX", 8)
        yield


def overlay_of(changes_of_groups: list[Changes], are_scanned: list[bool]) -> Overlay:
    """Return the overlay of some groups, of which a scan follows some."""
    overlay = Overlay()
    for group, is_scanned in zip(changes_of_groups, are_scanned, strict=False):
        overlay.add(dict(group))
        if is_scanned:
            overlay.sorted_keys()
    return overlay


def applied(entries: Entries, changes_of_groups: list[Changes]) -> Entries:
    expected: dict[bytes, Overlaid] = dict(entries)
    for group in changes_of_groups:
        expected |= group
    return {key: value for key, value in expected.items() if value is not None}


def between(entries: Entries, low: bytes, high: bytes) -> Entries:
    return {key: value for key, value in entries.items() if low <= key < high}


def scanned(entries: Entries, layers: list[Layer], *, reverse: bool = False) -> list[tuple[bytes, bytes]]:
    stored = iter(sorted(entries.items(), reverse=reverse))
    return OverlaidEntries(stored, layers, b"", b"z", reverse=reverse).take(10_000)


def taken(entries: OverlaidEntries, sizes: list[int]) -> list[tuple[bytes, bytes]]:
    """Take all entries in steps of some sizes."""
    found: list[tuple[bytes, bytes]] = []
    *first, last = sizes
    for size in first:
        found += entries.take(size)
    while step := entries.take(last):
        found += step
    return found


def asked_keys(entries: Entries, changes_of_groups: list[Changes]) -> list[bytes]:
    return sorted({b"absent", *entries, *(key for group in changes_of_groups for key in group)})


# --- by key -----------------------------------------------------------------------------------------------------------


@given(tree, groups, groups, booleans)
def test_a_key_is_looked_up_in_the_latest_group_that_has_it_and_then_below(
    entries: Entries, frozen: list[Changes], active: list[Changes], are_scanned: list[bool]
) -> None:
    layers = layers_of_now([overlay_of(active, are_scanned), overlay_of(frozen, are_scanned)])
    expected = applied(entries, [*frozen, *active])
    asked = asked_keys(entries, [*frozen, *active])
    assert [look_up(layers, entries.get, key) for key in asked] == [expected.get(key) for key in asked]
    assert read_keys(layers, entries.get, asked) == [expected.get(key) for key in asked]
    assert [read_keys(layers, entries.get, [key]) for key in asked] == [[expected.get(key)] for key in asked]


# --- in order ---------------------------------------------------------------------------------------------------------


@given(tree, groups, groups, bounds, takes, booleans)
def test_a_scan_has_the_entries_of_the_tree_with_every_change_in_place(
    entries: Entries,
    frozen: list[Changes],
    active: list[Changes],
    low_and_high: list[bytes],
    sizes: list[int],
    are_scanned: list[bool],
) -> None:
    low, high = low_and_high
    layers = layers_of_now([overlay_of(active, are_scanned), overlay_of(frozen, are_scanned[12:])])
    inside = sorted(between(entries, low, high).items())
    expected = sorted(between(applied(entries, [*frozen, *active]), low, high).items())
    assert taken(OverlaidEntries(iter(inside), layers, low, high, reverse=False), sizes) == expected
    assert taken(OverlaidEntries(iter(inside[::-1]), layers, low, high, reverse=True), sizes) == expected[::-1]


@given(tree, groups, bounds, takes, booleans)
def test_entries_of_the_tree_beyond_the_bounds_come_after_those_between_them(
    entries: Entries,
    changes_of_groups: list[Changes],
    low_and_high: list[bytes],
    sizes: list[int],
    are_scanned: list[bool],
) -> None:
    """A scan does not know where the tree's entries end, and stops at the first that is outside."""
    low, high = low_and_high
    layers = layers_of_now([overlay_of(changes_of_groups, are_scanned)])
    expected = sorted(between(applied(entries, changes_of_groups), low, high).items())
    upward = sorted(entry for entry in entries.items() if entry[0] >= low)
    forward = taken(OverlaidEntries(iter(upward), layers, low, high, reverse=False), sizes)
    assert forward == expected + [entry for entry in upward if entry[0] >= high]
    downward = sorted((entry for entry in entries.items() if entry[0] < high), reverse=True)
    backward = taken(OverlaidEntries(iter(downward), layers, low, high, reverse=True), sizes)
    assert backward == expected[::-1] + [entry for entry in downward if entry[0] < low]


@given(tree, groups, st.lists(st.integers(0, 7), max_size=8), st.booleans(), booleans)
def test_a_take_is_short_only_when_nothing_is_left(
    entries: Entries, changes_of_groups: list[Changes], sizes: list[int], reverse: bool, are_scanned: list[bool]
) -> None:
    stored = iter(sorted(entries.items(), reverse=reverse))
    layers = layers_of_now([overlay_of(changes_of_groups, are_scanned)])
    overlaid = OverlaidEntries(stored, layers, b"", b"z", reverse=reverse)
    left = sorted(applied(entries, changes_of_groups).items(), reverse=reverse)
    for size in sizes:
        assert overlaid.take(size) == left[:size]
        left = left[size:]


@given(groups, booleans)
def test_the_ordered_keys_of_an_overlay_are_all_that_it_has(
    changes_of_groups: list[Changes], are_scanned: list[bool]
) -> None:
    overlay = overlay_of(changes_of_groups, are_scanned)
    recent, earlier = overlay.sorted_keys()
    assert (recent, earlier) == (sorted(recent), sorted(earlier))
    assert {*recent, *earlier} == set(overlay.latest)


@given(tree, changes, st.booleans())
def test_entries_and_changes_of_one_stretch_of_keys_are_merged(entries: Entries, group: Changes, reverse: bool) -> None:
    expected = sorted(applied(entries, [group]).items(), reverse=reverse)
    assert merged(entries.items(), group, reverse=reverse) == expected


# --- over time --------------------------------------------------------------------------------------------------------


@given(tree, groups, groups, booleans)
def test_a_snapshot_sees_the_state_of_its_moment_whatever_is_added_later(
    entries: Entries, frozen: list[Changes], active: list[Changes], are_scanned: list[bool]
) -> None:
    overlay = Overlay()
    below = overlay_of(frozen, are_scanned)
    snapshots: list[tuple[list[Layer], Entries]] = []
    for number, group in enumerate(active):
        snapshots.append(([Layer(overlay, {}), *layers_of_now([below])], applied(entries, [*frozen, *active[:number]])))
        for (layer, _), _ in snapshots:
            overlay.keep_for(layer.undone, group)
        overlay.add(dict(group))
        # Some of them, so that the keys are in order at different times.
        for layers, expected in snapshots[:: 1 + are_scanned[number]]:
            assert scanned(entries, layers) == sorted(expected.items())
    asked = asked_keys(entries, [*frozen, *active])
    for layers, expected in snapshots:
        assert scanned(entries, layers) == sorted(expected.items())
        assert scanned(entries, layers, reverse=True) == sorted(expected.items(), reverse=True)
        assert read_keys(layers, entries.get, asked) == [expected.get(key) for key in asked]
        assert [read_keys(layers, entries.get, [key]) for key in asked] == [[expected.get(key)] for key in asked]


@given(tree, groups, booleans)
def test_the_groups_of_an_overlay_have_its_effect_when_they_are_folded_in_order(
    entries: Entries, changes_of_groups: list[Changes], are_scanned: list[bool]
) -> None:
    overlay = overlay_of(changes_of_groups, are_scanned)
    expected = applied(entries, changes_of_groups)
    assert applied(entries, overlay.groups) == expected
    assert applied(entries, [overlay.latest]) == expected
    # Twice, as after a crash.
    assert applied(applied(entries, overlay.groups), overlay.groups) == expected
