from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_condition, parse_query
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.lexer import EXACT_KEYWORDS, KEYWORDS
from asterism.languages.cosmos_sql.syntax.parser import QUERY_CHARACTERS_MAX, TREE_LEVELS_MAX

_OPERATORS = "= != <> < <= > >= + - * / % & | ^ ~ << >> >>> || ?? ? : . , ( ) [ ] { }"
_WORDS = [
    *KEYWORDS,
    *EXACT_KEYWORDS,
    *_OPERATORS.split(),
    "c",
    "c.a",
    "rank",
    "COUNT",
    "@p",
    "1",
    ".5",
    "'s'",
    '"k"',
    "#",
]


def _is_query_or_refused_in_place(text: str) -> bool:
    """Return whether the text compiles or is refused; other errors, such as a RecursionError, are raised."""
    try:
        compile_query(parse_query(text), {"@p": 1}).matches({"a": 1})
    except MalformedQuery as refusal:
        return 0 <= refusal.start <= refusal.end <= len(text)
    return True


@given(st.text())
def test_any_text_is_a_query_or_refused(text: str) -> None:
    assert _is_query_or_refused_in_place(text)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(_WORDS), max_size=30))
def test_any_words_of_the_language_are_a_query_or_refused(words: list[str]) -> None:
    assert _is_query_or_refused_in_place("SELECT " + " ".join(words))


@settings(max_examples=300)
@given(st.lists(st.sampled_from(_WORDS), max_size=20))
def test_any_filter_of_words_is_a_query_or_refused(words: list[str]) -> None:
    assert _is_query_or_refused_in_place("SELECT * FROM c WHERE c.a " + " ".join(words))


@pytest.mark.parametrize(
    ("before", "middle", "after"),
    [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ('{"a": ', "1", "}"),
        ("f(", "1", ")"),
        ("(SELECT VALUE ", "1", ")"),
        ("ARRAY(SELECT VALUE ", "1", ")"),
        ("1 = (", "1", ")"),
        ("c[", "1", "]"),
        ("- ", "1", ""),
        ("NOT ", "1", ""),
        ("", "1", " + 1"),
        ("", "1", " = 1"),
        ("", "1", " ?? 1"),
        ("1 ? 1 : ", "1", ""),
        ("1 ? ", "1", " : 1"),
        ("", "1", " IN (1)"),
        ("", "1", "[c]"),
        ("1 BETWEEN ", "1", " AND 1"),
        ("* FROM (SELECT ", "1", ")"),
    ],
)
def test_ten_thousand_levels_are_refused(before: str, middle: str, after: str) -> None:
    text = before * 10_000 + middle + after * 10_000
    with pytest.raises(MalformedQuery):
        parse_query(f"SELECT {text}")


def test_the_highest_tree_allowed_can_be_compiled_and_run() -> None:
    # Below the query: the selection, SELECT and the sum's own levels.
    additions = TREE_LEVELS_MAX - 4
    compiled = compile_query(parse_query("SELECT VALUE 1" + " + 1" * additions), {})
    assert compiled.project({}) == additions + 1


def test_chains_of_and_and_or_are_wide_and_not_deep() -> None:
    terms = " OR ".join(f"(c.a = {number} AND c.b = {number})" for number in range(2000))
    query = parse_query(f"SELECT * FROM c WHERE {terms}")
    assert isinstance(query.where, tree.Or)
    assert len(query.where.operands) == 2000


def test_generated_filters_nested_to_the_left_are_parsed() -> None:
    depth = 500
    text = "(" * depth + "c.a = 0" + "".join(f" OR c.a = {number})" for number in range(1, depth + 1))
    compiled = compile_query(parse_query(f"SELECT * FROM c WHERE {text}"), {})
    assert [compiled.matches({"a": depth}), compiled.matches({"a": depth + 1})] == [True, False]


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(MalformedQuery):
        parse_query("SELECT * FROM c" + " " * QUERY_CHARACTERS_MAX)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a = b", "(NOT a) = b"),
        ("a + b * c - d", "(a + (b * c)) - d"),
        ("a < b = c", "(a < b) = c"),
        ("a & b = c", "a & (b = c)"),
        ("a | b ^ c & d", "a | (b ^ (c & d))"),
        ("a || b LIKE c || d", "(a || b) LIKE (c || d)"),
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a ?? b OR c", "a ?? (b OR c)"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("a ?? b ? c : d", "(a ?? b) ? c : d"),
        ("a ?? b ?? c", "(a ?? b) ?? c"),
        ("a <> b", "a != b"),
        ("(a AND b) AND c", "a AND b AND c"),
        ("-a.b", "-(a.b)"),
        ("(a).b", "a.b"),
        ('a["b"][0]', "a.b[0]"),
        ("a -- c\n /* d */ + b", "a + b"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert parse_query(f"SELECT VALUE {text}") == parse_query(f"SELECT VALUE {same}")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT TOP @n c.a AS x FROM c WHERE c.d > 1 GROUP BY c.a ORDER BY c.a ASC, c.b DESC OFFSET 1 LIMIT 2",
        "SELECT * FROM c JOIN x IN c.a JOIN (SELECT VALUE 1 FROM y IN x.b) z",
        "SELECT VALUE ARRAY(SELECT VALUE t.name FROM t IN c.tags) FROM c",
        "SELECT * FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 1) AND ALL(SELECT VALUE 1)",
        "SELECT VALUE [FIRST(SELECT VALUE 1), LAST(SELECT VALUE 1), (SELECT VALUE 1)]",
        "SELECT TOP 10 * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'x'), VectorDistance(c.v, [1, 2]))",
        "SELECT VALUE udf.f(LEFT(c.a, 1), RIGHT(c.a, 1)) FROM c.a[0]['b'] AS c",
        "SELECT c.rank, c.first, c.last, c.all FROM c ORDER BY c.rank",
        'SELECT c._rid, [{"item": c.x}] AS orderByItems, c AS payload FROM c WHERE ((true) AND (true)) ORDER BY c.x',
    ],
)
def test_the_whole_language_has_a_tree(text: str) -> None:
    assert parse_query(text).span == (0, len(text))


def test_the_tree_of_a_text_is_cached() -> None:
    assert parse_query("SELECT 1") is parse_query("SELECT 1")


def test_a_condition_is_a_query_without_select() -> None:
    condition = compile_query(parse_condition("from c where c.n > 1"), {})
    assert [condition.matches({"n": 1}), condition.matches({"n": 2})] == [False, True]


@pytest.mark.parametrize("text", ["SELECT * FROM c", "where c.n > 1", "from c where c.n > 1 order by c.n"])
def test_a_condition_has_only_from_and_where(text: str) -> None:
    with pytest.raises(MalformedQuery):
        parse_condition(text)
