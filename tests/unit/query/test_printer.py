from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import parse_query
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.lexer import EXACT_INTEGER_MAX
from asterism.languages.cosmos_sql.syntax.printer import to_text
from asterism.languages.cosmos_sql.syntax.tree import Span
from asterism.values.undefined import UNDEFINED

_NOWHERE = Span(0, 0)
_NAMES = st.sampled_from(["c", "x1", "all", "first", "räume", "_rid", "rank"])
_STEP_NAMES = _NAMES | st.sampled_from(["", "a b", "value", "Select", "true", "TRUE", "1a", "q\"'\\\n"])
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_NUMBERS = st.integers(0, EXACT_INTEGER_MAX) | st.floats(0, allow_infinity=False).filter(
    lambda number: not number.is_integer() or number > EXACT_INTEGER_MAX
)
_LITERALS = st.builds(
    tree.Literal, st.none() | st.booleans() | _NUMBERS | _TEXTS | st.just(UNDEFINED), span=st.just(_NOWHERE)
)
_PATHS = st.builds(
    tree.Path,
    _NAMES,
    st.lists(_STEP_NAMES | st.integers(0, 9), max_size=3).map(tuple),
    span=st.just(_NOWHERE),
)
_PARAMETERS = st.builds(tree.Parameter, st.sampled_from(["@p", "@1"]), span=st.just(_NOWHERE))
_LEAVES = _LITERALS | _PATHS | _PARAMETERS
_OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>", "||"]


def _tuple(inner: st.SearchStrategy[tree.Node], smallest: int = 0) -> st.SearchStrategy[tuple[tree.Node, ...]]:
    return st.lists(inner, min_size=smallest, max_size=3).map(tuple)


def _chain(kind: type[tree.And] | type[tree.Or], inner: st.SearchStrategy[tree.Node]) -> st.SearchStrategy[tree.Node]:
    operands = st.lists(inner.filter(lambda node: not isinstance(node, kind)), min_size=2, max_size=3).map(tuple)
    return st.builds(kind, operands, span=st.just(_NOWHERE))


def _composed(inner: st.SearchStrategy[tree.Node]) -> st.SearchStrategy[tree.Node]:
    here = st.just(_NOWHERE)
    # A constant step below an alias is a step of the path, so the target of a member is not a path.
    targets = inner.filter(lambda node: not isinstance(node, tree.Path))
    names = st.builds(tree.Literal, _STEP_NAMES, span=here)
    udf_names = st.sampled_from(["f", "toUpper"])
    return st.one_of(
        st.builds(tree.Member, targets, inner | names, span=here),
        st.builds(tree.ArrayLiteral, _tuple(inner), span=here),
        st.builds(tree.ObjectLiteral, st.lists(st.tuples(_TEXTS, inner), max_size=2).map(tuple), span=here),
        st.builds(tree.Unary, st.sampled_from(["-", "+", "~", "NOT"]), inner, span=here),
        st.builds(tree.Binary, st.sampled_from(_OPERATORS), inner, inner, span=here),
        _chain(tree.And, inner),
        _chain(tree.Or, inner),
        st.builds(tree.Conditional, inner, inner, inner, span=here),
        st.builds(tree.Coalesce, inner, inner, span=here),
        st.builds(tree.In, inner, _tuple(inner, 1), st.booleans(), span=here),
        st.builds(tree.Between, inner, inner, inner, st.booleans(), span=here),
        st.builds(tree.Like, inner, inner, st.none() | st.just("!"), st.booleans(), span=here),
        st.builds(tree.Call, st.sampled_from(["COUNT", "LEFT"]), _tuple(inner), st.just(False), here, span=here),
        st.builds(tree.Call, udf_names, _tuple(inner), st.just(True), here, span=here),
        st.builds(tree.Subquery, st.sampled_from(tree.SubqueryKind), _queries(inner), span=here),
    )


def _queries(inner: st.SearchStrategy[tree.Node]) -> st.SearchStrategy[tree.Query]:
    here = st.just(_NOWHERE)
    aliases = st.none() | _NAMES
    counts = _PARAMETERS | st.builds(tree.Literal, st.integers(0, 9), span=here)
    listed = st.builds(tree.SelectItem, inner, aliases, span=here)
    selections = st.builds(tree.SelectValue, inner, span=here) | st.builds(
        tree.SelectList, _tuple(listed, 1), span=here
    )
    sources = st.builds(tree.Source, _PATHS, aliases, span=here) | st.builds(
        tree.Source, _PATHS, _NAMES, st.just(True), span=here
    )
    orders = st.builds(tree.OrderItem, inner, st.just(False), st.booleans(), span=here) | st.builds(
        tree.OrderItem, inner, st.just(True), st.just(True), span=here
    )
    return st.builds(
        tree.Query,
        st.builds(tree.Select, selections, st.booleans(), st.none() | counts, span=here),
        st.none() | st.builds(tree.From, sources, _tuple(sources), span=here),
        st.none() | inner,
        st.none() | st.builds(tree.GroupBy, _tuple(inner, 1), span=here),
        st.none() | st.builds(tree.OrderBy, _tuple(orders, 1), st.just(False), span=here),
        st.none() | st.builds(tree.OffsetLimit, counts, counts, span=here),
        span=here,
    )


_EXPRESSIONS = st.recursive(_LEAVES, _composed, max_leaves=8)


@settings(max_examples=150)
@given(_queries(_EXPRESSIONS))
def test_a_printed_query_is_parsed_to_the_same_tree(query: tree.Query) -> None:
    assert parse_query(to_text(query)) == query


@settings(max_examples=150)
@given(_queries(_EXPRESSIONS))
def test_the_canonical_text_is_printed_as_it_is(query: tree.Query) -> None:
    text = to_text(query)
    assert to_text(parse_query(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("select value 1", "SELECT VALUE 1"),
        ("SELECT * FROM c WHERE c.a=1 and c['b']>2", "SELECT *\nFROM c\nWHERE ((c.a = 1) AND (c.b > 2))"),
        ("SELECT c.a x FROM root r", "SELECT c.a AS x\nFROM root AS r"),
        ("SELECT VALUE count(1) FROM x in c.a", "SELECT VALUE COUNT(1)\nFROM x IN c.a"),
        ("SELECT VALUE - -1", "SELECT VALUE -(-1)"),
        ("SELECT VALUE NOT c.a", "SELECT VALUE (NOT c.a)"),
        ("SELECT VALUE c['select'].all", 'SELECT VALUE c["select"].all'),
        ("SELECT TOP 5 * FROM c ORDER BY c.a asc, c.b", "SELECT TOP 5 *\nFROM c\nORDER BY c.a ASC, c.b"),
        ("SELECT DISTINCT c.a FROM c OFFSET 1 LIMIT @n", "SELECT DISTINCT c.a\nFROM c\nOFFSET 1 LIMIT @n"),
        (
            "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'x'))",
            'SELECT *\nFROM c\nORDER BY RANK RRF(FULLTEXTSCORE(c.a, "x"))',
        ),
        (
            "SELECT 1 FROM c JOIN (SELECT VALUE x FROM x IN c.a WHERE x > 1) AS s",
            "SELECT 1\nFROM c JOIN (SELECT VALUE x FROM x IN c.a WHERE (x > 1)) AS s",
        ),
        ("SELECT VALUE udf.toUpper(c.a)", "SELECT VALUE udf.toUpper(c.a)"),
        ("SELECT VALUE 'a\\'b\"'", 'SELECT VALUE "a\'b\\""'),
        ("SELECT VALUE c.a LIKE 'x' ESCAPE '!'", 'SELECT VALUE (c.a LIKE "x" ESCAPE "!")'),
        ("SELECT VALUE {'a': [1, 2.5, 1e30, null, undefined]}", 'SELECT VALUE {"a": [1, 2.5, 1e+30, null, undefined]}'),
    ],
)
def test_the_canonical_text(text: str, canonical: str) -> None:
    assert to_text(parse_query(text)) == canonical


def test_a_part_of_a_query_has_a_text_of_its_own() -> None:
    query = parse_query("SELECT * FROM c WHERE c.a = 1 ORDER BY c.a DESC")
    assert query.where is not None
    assert query.order_by is not None
    assert [to_text(query.where), to_text(query.order_by.items[0].expression)] == ["(c.a = 1)", "c.a"]
