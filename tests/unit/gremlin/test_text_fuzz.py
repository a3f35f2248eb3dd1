"""Damaged and hostile scripts: each is a traversal or a refusal, and nothing else is raised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.failure import CompileFailure, LimitExceeded
from asterism.languages.gremlin.plan.instructions import check
from asterism.languages.gremlin.text.parser import parse
from asterism.languages.gremlin.text.printer import print_traversal
from tests.unit.gremlin.test_instructions import ACCEPTED

SCRIPTS = ACCEPTED.strip().splitlines()
PIECES = [
    *("'", '"', '"""', "'''", "\\", "(", ")", "[", "]", "{", "}", ":", ",", ".", "..", ";", "=", "->", "$", "${"),
    *("g", "g.", "__", "__.", "V()", "it", "new ", "not(", "P.", "P.gt(", "T.", "T.id", "x.", ".and(", ".negate()"),
    *("1", "-", "+", "0x", "1e", "1e99999m", "9" * 30, "08", "1..", "'a'..", "//", "/*", "*/", "\n", "\x00"),
    *("XStrategy", "XStrategy(", "XStrategy.", ".build()", "datetime('", "UUID('x')", "Duration.ofDays(99999999999)"),
    *("typeOf(", "Lambda.", "null", "true", "[:]", "[a:", "\ud800", "\\ud800", "\u00e9", "Cardinality.list("),
]
PIECE = st.sampled_from(PIECES)
REPEATED = [
    *("'", '"', "(", "[", "{", ".", "/", "-", "$", "1", "_", " ", "\n", ":", ",", "\\"),
    *("/*", "'\\", "\"'", '"""\'', "a.", "1..", ".a()", "[1],", "{a ", "a:", "not(", "->"),
]


def assert_read_or_refused(text: str) -> None:
    """Check that a text is refused, or printed to a text that is read again."""
    try:
        traversal = parse(text, frozenset({"x"}))
        check(traversal)
    except (CompileFailure, LimitExceeded):
        return
    parse(print_traversal(traversal))


@given(st.lists(PIECE, max_size=12).map("".join))
def test_pieces_in_any_order(text: str) -> None:
    assert_read_or_refused("g.V().has(" + text)
    assert_read_or_refused(text)


@given(st.text())
def test_any_text(text: str) -> None:
    assert_read_or_refused(text)


@given(st.binary())
def test_any_bytes(payload: bytes) -> None:
    assert_read_or_refused("g.inject('" + payload.decode("latin-1"))


@given(st.sampled_from(SCRIPTS), st.integers(0, 200), st.integers(0, 8), st.one_of(st.just(""), PIECE))
def test_cut_and_changed_scripts(script: str, start: int, length: int, piece: str) -> None:
    assert_read_or_refused(script[:start])
    assert_read_or_refused(script[:start] + piece + script[start + length :])


@pytest.mark.parametrize("prefix", ["", "g.V(", "g.V([", "g.withStrategies(XStrategy"])
@pytest.mark.parametrize("repeated", REPEATED)
def test_sixty_four_kilobytes_of_the_same(prefix: str, repeated: str) -> None:
    assert_read_or_refused(prefix + repeated * ((64 * 1024 - len(prefix)) // len(repeated)))
