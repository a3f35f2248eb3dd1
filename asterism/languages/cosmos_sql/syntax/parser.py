"""Query text to tree: the clauses of a query, in their fixed order.

Any text gets a tree or MalformedQuery, in time that grows with its length: the length, the nesting and the height of
the tree are limited, so that no code after the parser has to handle a deep or endless input.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.expression_parser import ExpressionParser
from asterism.languages.cosmos_sql.syntax.lexer import END, IDENTIFIER, NUMBER, PARAMETER, STRING, tokenize
from asterism.languages.cosmos_sql.syntax.token_stream import SYNTAX_ERROR, TokenStream
from asterism.languages.cosmos_sql.syntax.tree import Span

# The service's limit for the text of a query is 512 KB.
QUERY_CHARACTERS_MAX: Final = 512 * 1024
# Walks over a tree spend up to three Python frames on a level.
TREE_LEVELS_MAX: Final = 150
# Texts whose trees are cached: a program has few texts, and its values come as parameters.
PARSED_QUERIES_KEPT: Final = 512
# The tree of a text takes about a hundred times the text's memory; long texts are parsed each time.
KEPT_QUERY_CHARACTERS_MAX: Final = 16 * 1024


def parse_query(text: str) -> tree.Query:
    """Return the tree of a whole query. Raises MalformedQuery."""
    parse = _parse_cached if len(text) <= KEPT_QUERY_CHARACTERS_MAX else _parse
    return parse(text, is_condition=False)


def parse_condition(text: str) -> tree.Query:
    """Return the tree of a condition, `FROM c WHERE …`, as patches carry it. Raises MalformedQuery."""
    parse = _parse_cached if len(text) <= KEPT_QUERY_CHARACTERS_MAX else _parse
    return parse(text, is_condition=True)


@lru_cache(maxsize=PARSED_QUERIES_KEPT)
def _parse_cached(text: str, *, is_condition: bool) -> tree.Query:
    return _parse(text, is_condition=is_condition)


def _parse(text: str, *, is_condition: bool) -> tree.Query:
    if len(text) > QUERY_CHARACTERS_MAX:
        reason = f"The query is longer than {QUERY_CHARACTERS_MAX} characters."
        raise MalformedQuery(SYNTAX_ERROR, reason, QUERY_CHARACTERS_MAX, len(text))
    query = QueryParser(TokenStream(tokenize(text))).whole_text(is_condition=is_condition)
    if tree.levels(query, levels_max=TREE_LEVELS_MAX) > TREE_LEVELS_MAX:
        raise MalformedQuery(SYNTAX_ERROR, "The query is nested too deeply.", 0, len(text))
    return query


class QueryParser:
    """Parses the clauses of one query text; expressions call it again for subqueries."""

    def __init__(self, stream: TokenStream) -> None:
        self._stream = stream
        self._expressions = ExpressionParser(stream, self._query)

    def whole_text(self, *, is_condition: bool) -> tree.Query:
        query = self._condition() if is_condition else self._query()
        if self._stream.current.symbol != END:
            self._stream.refuse()
        return query

    def _query(self) -> tree.Query:
        self._stream.enter_rule()
        start = self._stream.current.start
        select = self._select()
        from_clause = self._from() if self._stream.current.symbol == "FROM" else None
        if from_clause is None and isinstance(select.selection, tree.SelectStar):
            self._stream.refuse()
        where, group_by, order_by, offset_limit = (
            self._where(),
            self._group_by(),
            self._order_by(),
            self._offset_limit(),
        )
        self._stream.leave_rule()
        span = self._stream.span_from(start)
        return tree.Query(select, from_clause, where, group_by, order_by, offset_limit, span=span)

    def _condition(self) -> tree.Query:
        start = self._stream.current.start
        nowhere = Span(start, start)
        select = tree.Select(tree.SelectStar(span=nowhere), span=nowhere)
        from_clause = self._from()
        return tree.Query(select, from_clause, self._where(), span=self._stream.span_from(start))

    # --- SELECT -----------------------------------------------------------------------------------------------------

    def _select(self) -> tree.Select:
        stream = self._stream
        start = stream.expect("SELECT").start
        distinct = stream.take_if("DISTINCT") is not None
        top_word = stream.take_if("TOP")
        top = None if top_word is None else self._count()
        top_start = None if top_word is None else top_word.start
        selection = self._selection()
        return tree.Select(selection, distinct, top, top_start=top_start, span=stream.span_from(start))

    def _selection(self) -> tree.Selection:
        stream = self._stream
        start = stream.current.start
        if stream.take_if("*"):
            return tree.SelectStar(span=stream.span_from(start))
        if stream.take_if("VALUE"):
            expression = self._expressions.expression()
            return tree.SelectValue(expression, span=stream.span_from(start))
        items = [self._select_item()]
        while stream.take_if(","):
            items.append(self._select_item())
        return tree.SelectList(tuple(items), span=stream.span_from(start))

    def _select_item(self) -> tree.SelectItem:
        start = self._stream.current.start
        expression = self._expressions.expression()
        alias = self._optional_alias()
        return tree.SelectItem(expression, alias, span=self._stream.span_from(start))

    def _optional_alias(self) -> str | None:
        if self._stream.take_if("AS") or self._stream.at_name():
            return self._stream.expect_name()
        return None

    def _count(self) -> tree.Expression:
        """Parse the operand of TOP, OFFSET or LIMIT: a number or a parameter."""
        token = self._stream.current
        if token.symbol not in (NUMBER, PARAMETER):
            self._stream.refuse()
        self._stream.take()
        span = Span(token.start, token.end)
        return tree.Literal(token.value, span=span) if token.symbol == NUMBER else tree.Parameter(token.text, span=span)

    # --- FROM -------------------------------------------------------------------------------------------------------

    def _from(self) -> tree.From:
        stream = self._stream
        start = stream.expect("FROM").start
        source = self._source()
        joins = []
        while stream.take_if("JOIN"):
            joins.append(self._source())
        return tree.From(source, tuple(joins), span=stream.span_from(start))

    def _source(self) -> tree.Source:
        stream = self._stream
        start = stream.current.start
        if stream.at_name() and stream.following().symbol == "IN":
            alias = stream.expect_name()
            stream.expect("IN")
            collection = self._collection()
            return tree.Source(collection, alias, is_iterator=True, span=stream.span_from(start))
        collection = self._collection()
        optional_alias = self._optional_alias()
        return tree.Source(collection, optional_alias, span=stream.span_from(start))

    def _collection(self) -> tree.Path | tree.SubqueryCollection:
        stream = self._stream
        start = stream.current.start
        if stream.take_if("("):
            query = self._query()
            stream.expect(")")
            return tree.SubqueryCollection(query, span=stream.span_from(start))
        alias = stream.expect_name()
        steps: list[str | int] = []
        while stream.current.symbol in (".", "["):
            steps.append(self._collection_step())
        return tree.Path(alias, tuple(steps), span=stream.span_from(start))

    def _collection_step(self) -> str | int:
        stream = self._stream
        if stream.take_if("."):
            return stream.expect_name()
        stream.expect("[")
        value = stream.current.value
        if stream.current.symbol not in (STRING, NUMBER) or not isinstance(value, (str, int)):
            stream.refuse()
        stream.take()
        stream.expect("]")
        return value

    # --- other clauses ------------------------------------------------------------------------------------------------

    def _where(self) -> tree.Expression | None:
        return self._expressions.expression() if self._stream.take_if("WHERE") else None

    def _group_by(self) -> tree.GroupBy | None:
        stream = self._stream
        group = stream.take_if("GROUP")
        if group is None:
            return None
        stream.expect("BY")
        expressions = [self._expressions.expression()]
        while stream.take_if(","):
            expressions.append(self._expressions.expression())
        return tree.GroupBy(tuple(expressions), span=stream.span_from(group.start))

    def _order_by(self) -> tree.OrderBy | None:
        stream = self._stream
        order = stream.take_if("ORDER")
        if order is None:
            return None
        stream.expect("BY")
        by_rank = stream.current.text.upper() == "RANK" and stream.following().symbol in (IDENTIFIER, "udf")
        if by_rank:
            stream.take()
        items = [self._order_item(by_rank=by_rank)]
        while stream.take_if(","):
            items.append(self._order_item(by_rank=by_rank))
        return tree.OrderBy(tuple(items), by_rank, span=stream.span_from(order.start))

    def _order_item(self, *, by_rank: bool) -> tree.OrderItem:
        stream = self._stream
        start = stream.current.start
        expression = self._expressions.function_call() if by_rank else self._expressions.expression()
        direction = stream.current.symbol
        is_explicit = direction in ("ASC", "DESC")
        if is_explicit:
            stream.take()
        return tree.OrderItem(expression, direction == "DESC", is_explicit, span=stream.span_from(start))

    def _offset_limit(self) -> tree.OffsetLimit | None:
        stream = self._stream
        offset = stream.take_if("OFFSET")
        if offset is None:
            return None
        offset_count = self._count()
        stream.expect("LIMIT")
        return tree.OffsetLimit(offset_count, self._count(), span=stream.span_from(offset.start))
