"""Scripts that are refused, and the sentences that say so in the service's words."""

from __future__ import annotations

import pytest

from asterism.languages.gremlin.failure import (
    METHOD_SCOPE,
    SYMBOL_SCOPE,
    SYNTAX_SCOPE,
    CompileFailure,
    LimitExceeded,
)
from asterism.languages.gremlin.text.parser import TextLimits, parse

CLOSURE = "Script compile error: Unsupported groovy language rule: 'closure' text: "


def refusal(text: str, bound: frozenset[str] = frozenset()) -> CompileFailure:
    with pytest.raises(CompileFailure) as failure:
        parse(text, bound)
    return failure.value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "g.V('a').repeat(out('b'))).path()",
            "Unexpected token: ')'; in input: 'g.V('a').repeat(out('b')))'. @ line 1, column 26.",
        ),
        ("g.V(", "Missing ')' @ line 1, column 5."),
        ("g.V", "Missing '(' @ line 1, column 4."),
        ("g.V()\n  .out(,)", "Unexpected token: ','; in input: 'g.V()\n  .out(,'. @ line 2, column 8."),
        ("g.V(1,)", "Unexpected token: ')'; in input: 'g.V(1,)'. @ line 1, column 7."),
        ("g.V([1, 2)", "Unexpected token: ')'; in input: 'g.V([1, 2)'. @ line 1, column 10."),
        ("g.V('a)", "Missing ' @ line 1, column 5."),
        ("g.V('a\\'", "Missing ' @ line 1, column 5."),
        ('g.V("""a"")', 'Missing """ @ line 1, column 5.'),
        ("g.V('\\q')", "Unexpected escape: '\\q' @ line 1, column 5."),
        ("g.V(12abc)", "Unexpected token: '12abc'; in input: 'g.V(12abc'. @ line 1, column 5."),
        ("g.V(300b)", "The number 300 is out of the range of its type @ line 1, column 5."),
        ("g.V() /* x", "Unexpected token: '/*'; in input: 'g.V() /*'. @ line 1, column 7."),
        ("", "Missing 'g' @ line 1, column 1."),
    ],
)
def test_a_syntax_error_is_shown_with_its_place(text: str, sentence: str) -> None:
    failure = refusal(text)
    assert failure.sentence == f"Script compile error: {sentence}"
    assert failure.scope == SYNTAX_SCOPE


@pytest.mark.parametrize(
    ("text", "excerpt", "column"),
    [
        ("g.V().map {it.get()}", "{it.get()}", 11),
        ("g.V().map{it.get()}.count()", "{it.get()}", 10),
        ("g.V().filter({it.get() > {1}})", "{it.get() > {1}}", 14),
        ("g.V().filter({ x -> x })", "{ x -> x }", 14),
        ("g.V().map({it})", "{it}", 11),
        ("g.V().map(x -> 1)", "x -> 1)", 11),
        ("g.V().map(Lambda.function('it'))", "Lambda.function", 11),
    ],
)
def test_closures_are_refused_with_their_text(text: str, excerpt: str, column: int) -> None:
    failure = refusal(text, frozenset({"x"}))
    assert failure.sentence == f"{CLOSURE}'{excerpt}' @ line 1, column {column}."


@pytest.mark.parametrize(
    ("text", "rule"),
    [("x = g.V()", "assignment"), ("def x = 1", "assignment"), ('g.V("$x")', "gstring"), ('g.V("a ${x}")', "gstring")],
)
def test_other_parts_of_groovy_are_refused_by_their_name(text: str, rule: str) -> None:
    assert f"Unsupported groovy language rule: '{rule}'" in refusal(text).sentence


@pytest.mark.parametrize("text", ["g.V(); g.E()", "g.V()\ng.E()"])
def test_a_second_statement_is_refused(text: str) -> None:
    assert "A script has one statement" in refusal(text).sentence


@pytest.mark.parametrize(
    ("text", "name", "column"),
    [
        ("graph.V()", "graph", 1),
        ("g.V(x)", "x", 5),
        ("g.V(it)", "it", 5),
        ("g.V().by(Foo.bar)", "Foo", 10),
        ("g.V(new Foo())", "Foo", 9),
    ],
)
def test_a_name_that_is_not_bound_is_refused(text: str, name: str, column: int) -> None:
    failure = refusal(text)
    assert failure.sentence == f"Unable to resolve symbol '{name}' in the current context. @ line 1, column {column}."
    assert failure.scope == SYMBOL_SCOPE


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("g.V().foo()", "Unable to find any method 'foo' @ line 1, column 10."),
        ("g.V().has('a', foo(1))", "Unable to find any method 'foo' @ line 1, column 19."),
        ("g.V().is(P.foo(1))", "Unable to find any method 'foo' @ line 1, column 15."),
        ("g.V().is(gt(1).xor(lt(2)))", "Unable to find any method 'xor' @ line 1, column 19."),
        ("g.next()", "Unable to find any method 'next' @ line 1, column 7."),
        ("g.V().next().id()", "Unable to find any method 'id' @ line 1, column 16."),
        (
            "g.V().is(between(1))",
            "Unable to bind to method 'between', with arguments of type: (Int32) @ line 1, column 17.",
        ),
        (
            "g.V().is(startingWith(1.5))",
            "Unable to bind to method 'startingWith', with arguments of type: (Double) @ line 1, column 22.",
        ),
    ],
)
def test_an_unknown_method_is_shown_at_its_parenthesis(text: str, sentence: str) -> None:
    failure = refusal(text)
    assert failure.sentence == sentence
    assert failure.scope == METHOD_SCOPE


@pytest.mark.parametrize(
    "text",
    [
        "g.V()" + ".map(out()" * 1000 + ")" * 1000,
        "g.inject(" + "[" * 1000 + "]" * 1000 + ")",
        "g.inject(" + "(" * 1000 + "1" + ")" * 1000 + ")",
        "g.inject(" + "{" * 1000 + "}" * 1000 + ")",
        "g.V().where(" + "not(" * 1000 + "out()" + ")" * 1001,
        "g.V().is(gt(1)" + ".and(lt(2)).or(lt(3))" * 1000 + ")",
    ],
)
def test_deep_nesting_is_a_refusal(text: str) -> None:
    assert "nested deeper than the 64 levels allowed" in refusal(text).sentence


def test_a_long_chain_of_predicates_is_not_nested() -> None:
    predicate = parse("g.V().is(gt(0)" + ".and(lt(9))" * 500 + ")").steps[1].arguments[0]
    assert len(predicate.value) == 501


def test_a_text_of_too_many_bytes_is_refused() -> None:
    limits = TextLimits(text_bytes_max=10)
    assert len(parse("g.V('abc')", limits=limits).steps) == 1
    with pytest.raises(LimitExceeded, match="13 bytes, more than the 10 allowed"):
        parse("g.V('\u00e9\u00e9ab')", limits=limits)


def test_a_traversal_of_too_many_steps_is_refused_children_included() -> None:
    limits = TextLimits(steps_max=3)
    assert len(parse("g.V().out().in()", limits=limits).steps) == 3
    with pytest.raises(LimitExceeded, match="more than the 3 steps allowed"):
        parse("g.V().where(out().in())", limits=limits)


@pytest.mark.parametrize("text", ["g.V('\ud800')", "g.V('\\ud800')", "\udc00"])
def test_half_of_a_character_is_refused(text: str) -> None:
    assert "half of a surrogate pair" in refusal(text).sentence


def test_a_refusal_repeats_only_a_part_of_a_long_script() -> None:
    assert len(refusal("g.V('" + "a" * 60_000 + "',)").sentence) < 1_000
