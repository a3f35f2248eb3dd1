"""Texts that are no rules: each is refused by a sentence with a position, and nothing else is ever raised."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.bus_sql.errors import MalformedRule
from asterism.models.messages.rules import FilterFailed
from tests.unit.bus_sql.messages_at_hand import ENVELOPE, compile_rules, correlation, message, sql


@pytest.mark.parametrize(
    ("expression", "position"),
    [
        ("", 0),
        ("color =", 7),
        ("color = 'red", 8),
        ("color = 'red' AND", 17),
        ("(color = 'red'", 14),
        ("color = 'red')", 13),
        ("color == 'red'", 7),
        ("color = 'red' size = 1", 14),
        ("AND = 1", 0),
        ("1", 0),
        ("'text'", 0),
        ("NULL", 0),
        ("size + 1", 0),
        ("newid()", 0),
        ("1 AND 1=1", 0),
        ("NOT 5", 4),
        ("color LIKE 'x' ESCAPE 'ab'", 22),
        ("color IN ()", 10),
        ("color IN 'a'", 9),
        ("color IS 5", 9),
        ("EXISTS(1)", 7),
        ("nonsense(1) = 1", 0),
        ("sys. = 1", 5),
        ("color = @missing", 8),
        ("size = 99999999999999999999", 7),
        ("size = 1e999", 7),
        ("size = 1x", 7),
        ("color # 1", 6),
        ("(" * 40 + "1=1" + ")" * 40, 33),
        ("NOT " * 40 + "1=1", 132),
        ("-" * 40 + "1 = 1", 33),
        ("a = 1".ljust(1025), 1024),
    ],
)
def test_a_malformed_filter_is_refused_at_its_place(expression: str, position: int) -> None:
    with pytest.raises(MalformedRule) as caught:
        compile_rules(sql(expression))
    assert caught.value.position == position
    assert re.search(rf"\. See character {position + 1} of the expression\.$", caught.value.reason)


@pytest.mark.parametrize(
    "action",
    [
        "SET",
        "SET color",
        "SET color = ",
        "SET 5 = 5",
        "REMOVE",
        "REMOVE 'x'",
        "color = 5",
        "SET sys.SequenceNumber = 5",
        "SET sys.Nonsense = 5",
        "REMOVE sys.EnqueuedTimeUtc",
        "SET color = @missing",
        "SET a = 1;; SET b = 2",
        "SET a = 1;" * 33,
    ],
)
def test_a_malformed_action_is_refused(action: str) -> None:
    with pytest.raises(MalformedRule):
        compile_rules(sql("1=1", action=action))


def test_an_empty_correlation_filter_is_refused() -> None:
    with pytest.raises(MalformedRule):
        compile_rules(correlation())


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("nonsense", "1"),
        ("int", "2147483648"),
        ("int", "1.5"),
        ("long", "x"),
        ("boolean", "yes"),
        ("double", "nan"),
        ("dateTime", "yesterday"),
        ("duration", "P"),
        ("duration", "PT"),
        ("duration", "1 hour"),
        ("duration", "P99999999D"),
        ("guid", "1234"),
        ("char", "ab"),
        ("unsignedInt", "-1"),
        ("base64Binary", "%%%"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(MalformedRule):
        compile_rules(sql("a = @value", value=(kind, text)))
    with pytest.raises(MalformedRule):
        compile_rules(correlation({"a": (kind, text)}))


_PIECES = st.sampled_from(
    re.findall(
        r"\S+",
        """AND OR NOT LIKE ESCAPE IN IS NULL EXISTS TRUE FALSE SET REMOVE ( ) ( ) , . ; = <> < > <= >= != + - * / %
        color size missing sys.Label sys.Nonsense user.color [two words] 'red' 'x%' '' 1 2.5 1e3 0 @p @q newid()
        property( p('color') EXISTS(size) sys. ' [ \" \u00e9 \u0000 # ²""",
    )
)


def outcome_of(text: str, kind: str, *, is_action: bool) -> str:
    """Return how the text of a filter or action ends for a message; other errors than the two of rules are raised."""
    rule = sql("1=1" if is_action else text, action=text if is_action else None, p=("string", "x"), q=(kind, "1"))
    try:
        copies = compile_rules(rule).select(message({"color": "red", "size": 10}), ENVELOPE)
    except (MalformedRule, FilterFailed) as refused:
        return refused.reason
    return f"{len(copies)} copies"


@given(
    st.lists(_PIECES, max_size=40).map(" ".join) | st.text(max_size=80), st.booleans(), st.sampled_from(["int", "guid"])
)
def test_every_text_compiles_or_is_refused_with_a_sentence(text: str, is_action: bool, kind: str) -> None:
    assert re.search(r"\.$|^[01] copies$", outcome_of(text, kind, is_action=is_action))
