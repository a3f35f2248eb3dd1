"""The parser of queries: from text to a tree."""

from __future__ import annotations

from typing import Final

from asterism.languages.blob_sql.errors import MalformedBlobQuery
from asterism.languages.blob_sql.expressions import ExpressionParser
from asterism.languages.blob_sql.lexer import tokens_of
from asterism.languages.blob_sql.token_stream import TokenStream, whole_number
from asterism.languages.blob_sql.tree import Aggregate, Column, EveryElement, Path, Select, Step

COLUMNS_MAX: Final = 1024
_TABLE: Final = "BLOBSTORAGE"
_CLAUSES: Final = frozenset({"FROM", "WHERE", "LIMIT", "GROUP", "ORDER", "HAVING", "JOIN", "UNION"})


def parse_query(text: str) -> Select:
    """Return the tree of a query; MalformedBlobQuery says where the text is not one, and why."""
    return _QueryParser(TokenStream(tokens_of(text))).query()


class _QueryParser:
    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens
        self._aliases = _table_names(tokens)
        self._expressions = ExpressionParser(tokens, self._aliases)

    def query(self) -> Select:
        tokens = self._tokens
        tokens.expect("SELECT")
        if tokens.accept("DISTINCT"):
            raise MalformedBlobQuery("DISTINCT is not a part of quick query.", tokens.peek().position)
        columns = self._columns()
        tokens.expect("FROM")
        source = self._source()
        condition = self._expressions.condition() if tokens.accept("WHERE") else None
        if condition is not None and self._expressions.aggregates_in_condition:
            raise MalformedBlobQuery("WHERE must not have aggregates.", tokens.peek().position)
        limit = whole_number(tokens) if tokens.accept("LIMIT") else None
        tokens.accept_sign(";")
        tokens.expect_end()
        aggregates = tuple(self._expressions.aggregates)
        if aggregates:
            self._check_grouping(columns)
        return Select(columns, source, condition, limit, aggregates)

    def _columns(self) -> tuple[Column, ...] | None:
        tokens = self._tokens
        if tokens.accept_sign("*"):
            return None
        columns = [self._column()]
        while tokens.accept_sign(","):
            if len(columns) == COLUMNS_MAX:
                raise MalformedBlobQuery(f"There are more than {COLUMNS_MAX} columns.", tokens.peek().position)
            columns.append(self._column())
        self._expressions.leave_columns()
        return tuple(columns)

    def _column(self) -> Column:
        expression = self._expressions.expression()
        tokens = self._tokens
        token = tokens.peek()
        if tokens.accept("AS"):
            return Column(expression, tokens.name())
        if token.kind == "name" or (token.kind == "word" and token.keyword not in _CLAUSES):
            return Column(expression, tokens.name())
        return Column(expression, None)

    def _source(self) -> tuple[Step, ...]:
        tokens = self._tokens
        token = tokens.peek()
        if tokens.name().upper() != _TABLE:
            raise MalformedBlobQuery("The only table is BlobStorage.", token.position)
        steps: list[Step] = []
        while True:
            if tokens.accept_sign("["):
                steps.append(EveryElement.STEP if tokens.accept_sign("*") else whole_number(tokens))
                tokens.expect_sign("]")
            elif tokens.accept_sign("."):
                steps.append(tokens.name())
            else:
                break
        # BlobStorage[*] are the records of the blob, as BlobStorage is.
        if steps and steps[0] is EveryElement.STEP:
            steps = steps[1:]
        tokens.accept("AS")
        if tokens.peek().kind == "name" or (tokens.peek().kind == "word" and tokens.peek().keyword not in _CLAUSES):
            tokens.name()
        return tuple(steps)

    def _check_grouping(self, columns: tuple[Column, ...] | None) -> None:
        """Refuse columns beside aggregates: there is no GROUP BY, so they have no value."""
        for column in columns or ():
            if not isinstance(column.expression, Aggregate) and isinstance(column.expression, Path):
                raise MalformedBlobQuery("A column beside aggregates has no value.", column.expression.position)


def _table_names(tokens: TokenStream) -> frozenset[str]:
    """Return the names of the table in capitals: its own, and its alias, which stands after the columns that use it."""
    names = {_TABLE}
    depth = 0
    is_after_from = False
    previous = ""
    for token in tokens.all_tokens():
        sign = token.text if token.kind == "sign" else ""
        depth += (sign == "(") - (sign == ")")
        if is_after_from and token.keyword in _CLAUSES:
            break
        is_name = token.kind in ("word", "name") and token.keyword != "AS"
        # The first name after FROM is the table's own, and one after a period belongs to the path.
        if is_after_from and is_name and previous not in ("FROM", ".", "["):
            names.add(token.text.upper())
        # FROM stands in TRIM and SUBSTRING as well.
        is_after_from = is_after_from or (token.keyword == "FROM" and depth == 0)
        previous = sign or token.keyword
    return frozenset(names)
