"""Digests of values: equal for what the database holds equal, and different for anything else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.advisor.value_digests import SALT_BYTES, Scalar, canonical_json, digest

SALT = bytes(range(SALT_BYTES))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", b'"a"'),
        ("ü\n", '"ü\\n"'.encode()),
        (1, b"1"),
        (1.0, b"1"),
        (-0.0, b"0"),
        (1.5, b"1.5"),
        (True, b"true"),
        (None, b"null"),
        (2**53 + 1, b"9007199254740992"),
        (1e300, b"%d" % int(1e300)),
        (10**400, b"1" + b"0" * 400),
    ],
)
def test_a_value_has_one_text(value: Scalar, text: bytes) -> None:
    assert canonical_json(value) == text


@given(st.integers(-(2**60), 2**60))
def test_numbers_that_are_equal_as_doubles_have_the_same_digest(number: int) -> None:
    assert digest(number, salt=SALT) == digest(float(number), salt=SALT)


def test_values_of_different_types_have_different_digests() -> None:
    values: list[Scalar] = ["1", 1, True, "true", None, "null", "", 0, False]
    assert len({digest(value, salt=SALT) for value in values}) == len(values)


def test_a_digest_depends_on_the_salt_and_shows_nothing_else() -> None:
    found = digest("ada", salt=SALT)
    assert re.fullmatch("#[0-9a-f]{16}", found)
    assert digest("ada", salt=SALT[::-1]) != found


def test_the_digest_of_a_value_is_the_same_in_every_version() -> None:
    # Captures are kept over updates of the program, and their salts are handed to other programs.
    assert digest("ada", salt=b"salt") == "#0f39d244e040c0e0"
