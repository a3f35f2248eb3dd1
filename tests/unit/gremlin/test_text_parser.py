"""Scripts and the traversals that they are read as."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from asterism.languages.gremlin.text.parser import parse
from asterism.languages.gremlin.tree import (
    NOW,
    RANDOM_UUID,
    T_ID,
    T_LABEL,
    CardinalityValue,
    Instruction,
    Predicate,
    Strategy,
    Token,
    Traversal,
    Variable,
)
from asterism.languages.gremlin.values.numbers import BigInteger, Byte, Float, Long, Short
from asterism.languages.gremlin.values.structures import freeze
from tests.unit.gremlin.script_trees import child, first_arguments, typed

IDENTIFIER = "f47af10b-58cc-4372-a567-0f02b2f3d479"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a'", "a"),
        ('"a"', "a"),
        ("''", ""),
        ('"it\'s"', "it's"),
        (r"'it\'s'", "it's"),
        (r"'\b\t\n\f\r\"\\'", '\b\t\n\f\r"\\'),
        (r"'\u00e9\101\uu0041'", "\u00e9AA"),
        (r"'\ud83d\ude00'", "\U0001f600"),
        ("'two\\\nlines'", "twolines"),
        ("'two\nlines'", "two\nlines"),
        ('"""a "quoted" text\nof two lines"""', 'a "quoted" text\nof two lines'),
        ("'''it's'''", "it's"),
        ('"100 $"', "100 $"),
        ('"a$b"', "a$b"),
        (r'"\$name"', "$name"),
        ("'$name'", "$name"),
    ],
)
def test_strings_are_read_with_their_escapes(text: str, expected: str) -> None:
    assert first_arguments(text) == (expected,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("1_000", 1000),
        ("4294967296", 4294967296),
        ("1i", 1),
        ("1L", Long(1)),
        ("1l", Long(1)),
        ("1b", Byte(1)),
        ("1s", Short(1)),
        ("1n", BigInteger(1)),
        ("0x1F", 31),
        ("-0xffL", Long(-255)),
        ("017", 15),
        ("1.0", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
        ("1_2.3_4e1_0", 123400000000.0),
        ("1d", 1.0),
        ("1.5f", Float(1.5)),
        ("0.1f", Float(0.10000000149011612)),
        ("1e99f", Float(math.inf)),
        ("1.50m", Decimal("1.50")),
        ("1m", Decimal(1)),
        ("NaN", math.nan),
        ("Infinity", math.inf),
        ("+Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("Integer.MAX_VALUE", 2147483647),
        ("Long.MAX_VALUE", Long(9223372036854775807)),
        ("true", True),
        ("false", False),
        ("null", None),
    ],
)
def test_numbers_get_the_type_of_their_suffix(text: str, expected: Any) -> None:
    (value,) = first_arguments(text)
    assert typed(value) == typed(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", []),
        ("[1, 'a', [2]]", [1, "a", [2]]),
        ("[:]", {}),
        ("[a: 1, 'b': 2]", {"a": 1, "b": 2}),
        ("[id: 1, label: 2, in: 3, true: 4]", {"id": 1, "label": 2, "in": 3, "true": 4}),
        ("[(T.id): 1, T.label: 2]", {T_ID: 1, T_LABEL: 2}),
        ("[(id): 1]", {T_ID: 1}),
        ("[(from): 1, (Direction.to): 2]", {Token("Direction", "OUT"): 1, Token("Direction", "IN"): 2}),
        ("[1: 'a', (2L): 'b']", {1: "a", Long(2): "b"}),
        ("[(x): 1]", {Variable("x"): 1}),
        ("[[1, 2]: 'a']", {freeze([1, 2]): "a"}),
        ("[(out('x')): 1]", {child("out", "x"): 1}),
        ("{1, 2}", {1, 2}),
        ("{}", set()),
        ("1..3", [1, 2, 3]),
        ("3..1", [3, 2, 1]),
        ("'a'..'c'", ["a", "b", "c"]),
        ("('a')", "a"),
    ],
)
def test_lists_maps_sets_and_ranges_are_read(text: str, expected: Any) -> None:
    (value,) = first_arguments(text)
    assert value == expected


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("T.id", "T", "id"),
        ("label", "T", "label"),
        ("desc", "Order", "desc"),
        ("decr", "Order", "desc"),
        ("Order.incr", "Order", "asc"),
        ("local", "Scope", "local"),
        ("Scope.global", "Scope", "global"),
        ("keys", "Column", "keys"),
        ("values", "Column", "values"),
        ("first", "Pop", "first"),
        ("all", "Pop", "all"),
        ("OUT", "Direction", "OUT"),
        ("Direction.from", "Direction", "OUT"),
        ("single", "Cardinality", "single"),
        ("list", "Cardinality", "list"),
        ("VertexProperty.Cardinality.set", "Cardinality", "set"),
        ("normSack", "Barrier", "normSack"),
        ("sum", "Operator", "sum"),
        ("Operator.and", "Operator", "and"),
        ("none", "Pick", "none"),
        ("Pick.any", "Pick", "any"),
        ("onCreate", "Merge", "onCreate"),
        ("Merge.outV", "Merge", "outV"),
        ("DT.second", "DT", "second"),
        ("GType.INT", "GType", "INT"),
        ("bigint", "GType", "BIGINT"),
        ("T.Id", "T", "id"),
        ("org.apache.tinkerpop.gremlin.structure.T.id", "T", "id"),
    ],
)
def test_constants_are_read_with_and_without_their_enumeration(text: str, kind: str, name: str) -> None:
    assert first_arguments(text) == (Token(kind, name),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P.gt(1)", Predicate("gt", 1)),
        ("gt(1)", Predicate("gt", 1)),
        ("P.Gte(1)", Predicate("gte", 1)),
        ("TextP.startingWith('a')", Predicate("startingWith", "a")),
        ("containing('a')", Predicate("containing", "a")),
        ("between(1, 5)", Predicate("between", [1, 5])),
        ("within()", Predicate("within", [])),
        ("within(1)", Predicate("within", [1])),
        ("within(1, 2)", Predicate("within", [1, 2])),
        ("within([1, 2])", Predicate("within", [1, 2])),
        ("within(1..3)", Predicate("within", [1, 2, 3])),
        ("without(x)", Predicate("without", Variable("x"))),
        ("P.not(eq(1))", Predicate("not", Predicate("eq", 1))),
        ("not(eq(1))", Predicate("not", Predicate("eq", 1))),
        ("eq(1).negate()", Predicate("not", Predicate("eq", 1))),
        ("eq(1).negate().negate()", Predicate("eq", 1)),
        ("gt(1).and(lt(9))", Predicate("and", [Predicate("gt", 1), Predicate("lt", 9)])),
        (
            "gt(1).and(lt(9)).and(neq(5))",
            Predicate("and", [Predicate("gt", 1), Predicate("lt", 9), Predicate("neq", 5)]),
        ),
        (
            "gt(1).and(lt(9)).or(eq(0))",
            Predicate("or", [Predicate("and", [Predicate("gt", 1), Predicate("lt", 9)]), Predicate("eq", 0)]),
        ),
        ("typeOf(GType.INT)", Predicate("typeOf", Token("GType", "INT"))),
        ("P.typeOf(list)", Predicate("typeOf", Token("GType", "LIST"))),
        ("typeOf(null)", Predicate("typeOf", Token("GType", "NULL"))),
        ("typeOf('Integer')", Predicate("typeOf", "Integer")),
        ("typeOf(Integer)", Predicate("typeOf", "Integer")),
        ("typeOf(java.util.List.class)", Predicate("typeOf", "List")),
    ],
)
def test_predicates_are_read_with_their_connectives(text: str, expected: Predicate) -> None:
    assert first_arguments(text) == (expected,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__.out('a')", child("out", "a")),
        ("out('a')", child("out", "a")),
        ("g.V('a')", child("V", "a")),
        ("g.V('a').next()", child("V", "a")),
        ("not(out())", child("not", child("out"))),
        ("values('a')", child("values", "a")),
        ("id()", child("id")),
        ("__.in().as('x')", Traversal((Instruction("in"), Instruction("as", ("x",))))),
        ("not(out()).count()", Traversal((Instruction("not", (child("out"),)), Instruction("count")))),
    ],
)
def test_children_are_read_with_and_without_their_source(text: str, expected: Traversal) -> None:
    assert first_arguments(text) == (expected,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("datetime('2018-03-22T00:35:44Z')", datetime(2018, 3, 22, 0, 35, 44, tzinfo=UTC)),
        ("datetime('2018-03-22')", datetime(2018, 3, 22, tzinfo=UTC)),
        ("datetime('2018-03')", datetime(2018, 3, 1, tzinfo=UTC)),
        ("DateTime('2018-03-22T01:00')", datetime(2018, 3, 22, 1, tzinfo=UTC)),
        (
            "datetime('2018-03-22T00:35:44.741+1600')",
            datetime(2018, 3, 22, 0, 35, 44, 741000, tzinfo=timezone(timedelta(hours=16))),
        ),
        ("OffsetDateTime.parse('2018-03-22T00:00:00-01:30')", datetime(2018, 3, 22, 1, 30, tzinfo=UTC)),
        ("datetime()", NOW),
        ("UUID()", RANDOM_UUID),
        (f"UUID('{IDENTIFIER}')", UUID(IDENTIFIER)),
        (f"UUID.fromString('{IDENTIFIER}')", UUID(IDENTIFIER)),
        ("Duration('PT1H30M')", timedelta(hours=1, minutes=30)),
        ("Duration.ofDays(2)", timedelta(days=2)),
        ("Cardinality.list(1)", CardinalityValue("list", 1)),
        ("set('a')", CardinalityValue("set", "a")),
        ("WithOptions.tokens", "~tinkerpop.valueMap.tokens"),
        ("WithOptions.labels", 2),
    ],
)
def test_functions_make_values(text: str, expected: Any) -> None:
    assert first_arguments(text) == (expected,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ReadOnlyStrategy", Strategy("ReadOnlyStrategy")),
        ("ReadOnlyStrategy.instance()", Strategy("ReadOnlyStrategy")),
        ("ReadOnlyStrategy.class", Strategy("ReadOnlyStrategy")),
        ("new SeedStrategy(seed: 5)", Strategy("SeedStrategy", {"seed": 5})),
        ("SeedStrategy(seed: 5)", Strategy("SeedStrategy", {"seed": 5})),
        ("new ReadOnlyStrategy()", Strategy("ReadOnlyStrategy")),
        (
            "SubgraphStrategy.build().vertices(hasLabel('a')).checkAdjacentVertices(false).create()",
            Strategy("SubgraphStrategy", {"vertices": child("hasLabel", "a"), "checkAdjacentVertices": False}),
        ),
        (
            "org.apache.PartitionStrategy.build().partitionKey('pk').readPartitions('a', 'b').create()",
            Strategy("PartitionStrategy", {"partitionKey": "pk", "readPartitions": ["a", "b"]}),
        ),
        (
            "PartitionStrategy.build().addReadPartition('a').addReadPartition('b').create()",
            Strategy("PartitionStrategy", {"readPartitions": ["a", "b"]}),
        ),
        (
            "ProjectionStrategy.build().IncludeSystemProperties('_ts').create()",
            Strategy("ProjectionStrategy", {"includeSystemProperties": ["_ts"]}),
        ),
    ],
)
def test_strategies_are_read_in_all_their_spellings(text: str, expected: Strategy) -> None:
    assert first_arguments(text) == (expected,)


def test_calls_on_the_source_stand_apart_from_the_steps() -> None:
    traversal = parse("g.withSideEffect('a', 1).with('x').V().with('y')")
    assert [instruction.name for instruction in traversal.source] == ["withSideEffect", "with"]
    assert [instruction.name for instruction in traversal.steps] == ["V", "with"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("g.V().To(out()).executionprofile()", ["V", "to", "executionProfile"]),
        ("g.v().as_('a').in_().has_label('b').valuemap()", ["V", "as", "in", "hasLabel", "valueMap"]),
        ("g.V() // all of them\n  .out() /* one\n hop */ .in();", ["V", "out", "in"]),
        ("g.V().toList()", ["V"]),
        ("g.V().next()", ["V"]),
        ("g.V().next(2);", ["V"]),
        ("g.V().iterate()", ["V", "discard"]),
        ("g.V().hasNext()", ["V", "limit", "fold", "choose"]),
        ("g", []),
    ],
)
def test_spellings_of_other_languages_and_ends_of_scripts_are_understood(text: str, names: list[str]) -> None:
    assert [instruction.name for instruction in parse(text).steps] == names


def test_transactions_are_read_as_bytecode_has_them() -> None:
    assert parse("g.tx().commit()").source == (Instruction("tx", ("commit",)),)


def test_an_instruction_knows_its_line_and_column() -> None:
    steps = parse("g.V()\n  .has('a',\n 1).out()").steps
    assert [(step.line, step.column) for step in steps] == [(1, 3), (2, 4), (3, 5)]


def test_a_bound_name_wins_over_a_constant() -> None:
    assert first_arguments("id, label, x", frozenset({"label", "x"})) == (T_ID, Variable("label"), Variable("x"))


def test_a_key_of_a_map_is_a_text_though_the_name_is_bound() -> None:
    assert first_arguments("[x: x]", frozenset({"x"})) == ({"x": Variable("x")},)


def test_unknown_names_are_variables_if_bindings_are_not_known() -> None:
    assert first_arguments("x") == (Variable("x"),)
