"""Records as bytes: a member for each field, in both directions, beside older and newer programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import StoredDamage
from asterism.values.records import Form, StoredRecord


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Inner:
    number: int = 0
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Example(StoredRecord):
    FORMS: ClassVar = {"reversed_text": Form(lambda text: text[::-1], lambda text: text[::-1])}
    STORED_NAMES: ClassVar = {"key": "k"}
    ABSENT_VALUES: ClassVar = {"layout": 1}
    STORED_IF_SET: ClassVar = frozenset({"optional"})
    NOT_STORED: ClassVar = frozenset({"is_dirty"})

    key: bytes
    name: str
    color: Color
    numbers: tuple[int, ...]
    words: frozenset[str]
    settings: Mapping[str, Any]
    inner: Inner
    reversed_text: str
    maybe: bytes | None = None
    optional: str | None = None
    layout: int = 2
    counts: dict[str, int] = field(default_factory=dict)
    is_dirty: bool = field(default=True, compare=False)


RECORDS = st.builds(
    Example,
    key=st.binary(),
    name=st.text(),
    color=st.sampled_from(Color),
    numbers=st.lists(st.integers(-(2**53), 2**53)).map(tuple),
    words=st.frozensets(st.text()),
    settings=st.dictionaries(st.text(), st.none() | st.booleans() | st.text(), max_size=3),
    inner=st.builds(Inner, st.integers(-(2**53), 2**53), st.none() | st.text()),
    reversed_text=st.text(),
    maybe=st.none() | st.binary(),
    optional=st.none() | st.text(),
    layout=st.integers(1, 9),
    counts=st.dictionaries(st.text(), st.integers(0, 9), max_size=3),
)
PLAIN = Example(b"\x0a", "n", Color.RED, (1, 2), frozenset({"b", "a"}), {"x": 1}, Inner(5), "abc")


@given(RECORDS)
def test_a_record_is_read_as_it_was_written(record: Example) -> None:
    assert Example.from_bytes(record.to_bytes()) == record


def test_each_type_has_its_form() -> None:
    assert json.loads(PLAIN.to_bytes()) == {
        "k": "0a",
        "name": "n",
        "color": "red",
        "numbers": [1, 2],
        "words": ["a", "b"],
        "settings": {"x": 1},
        "inner": {"number": 5, "text": None},
        "reversed_text": "cba",
        "maybe": None,
        "layout": 2,
        "counts": {},
    }


@given(RECORDS)
def test_members_are_in_the_order_of_the_fields(record: Example) -> None:
    expected = ["k", "name", "color", "numbers", "words", "settings", "inner", "reversed_text", "maybe"]
    expected += ["optional"] if record.optional is not None else []
    assert list(json.loads(record.to_bytes())) == [*expected, "layout", "counts"]


def test_a_record_of_an_older_program_has_defaults_for_what_it_lacks() -> None:
    stored = json.loads(PLAIN.to_bytes())
    for name in ("maybe", "layout", "counts"):
        del stored[name]
    opened = Example.from_fields(stored)
    assert (opened.maybe, opened.layout, opened.counts, opened.is_dirty) == (None, 1, {}, True)


def test_a_member_that_a_newer_program_has_added_is_ignored() -> None:
    assert Example.from_fields({**json.loads(PLAIN.to_bytes()), "later": 1}) == PLAIN


@pytest.mark.parametrize("changes", [{"k": "no hex"}, {"color": "green"}, {"inner": {"other": 1}}, {"numbers": 5}])
def test_a_record_that_is_not_such_a_record_is_damage(changes: dict[str, object]) -> None:
    with pytest.raises(StoredDamage, match="Example"):
        Example.from_fields({**json.loads(PLAIN.to_bytes()), **changes})


def test_a_record_without_a_member_that_it_needs_is_damage() -> None:
    with pytest.raises(StoredDamage, match="Example"):
        Example.from_bytes(b"{}")
