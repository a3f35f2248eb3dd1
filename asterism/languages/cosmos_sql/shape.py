"""The shape of a query: its text with every constant replaced, so that queries that differ in constants alone are one.

A shape shows no value of a query; the names of properties and parameters stay.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.printer import to_text
from asterism.languages.cosmos_sql.syntax.tree import Node, with_children

SHAPE_CHARACTERS_MAX: Final = 1000
# The tree of a longer text takes too long to walk and to print for what its shape tells.
_TEXT_CHARACTERS_MAX: Final = 8192
_NO_SHAPE: Final = "(a long query)"


def shape_of(query: tree.Query, *, text: str) -> str:
    """Return the shape, of bounded length. `text` is that of the query."""
    if len(text) > _TEXT_CHARACTERS_MAX:
        return _NO_SHAPE
    numbers = count(1)

    def placeholder(node: Node) -> Node:
        return tree.Parameter(f"@{next(numbers)}", span=node.span)

    def without_constants(node: Node) -> Node:
        if isinstance(node, tree.Literal):
            return placeholder(node)
        if isinstance(node, tree.In) and all(isinstance(value, tree.Literal) for value in node.haystack):
            # Lists of any length have one shape.
            needle = without_constants(node.needle)
            return tree.In(needle, (placeholder(node),), node.negated, span=node.span)  # type: ignore[arg-type]
        return with_children(node, without_constants)

    return to_text(without_constants(query)).replace("\n", " ")[:SHAPE_CHARACTERS_MAX]
