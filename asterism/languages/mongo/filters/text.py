"""$text in filters."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.filters.match import Node
from asterism.languages.mongo.filters.predicate import Scope, bad_value
from asterism.languages.mongo.text.search import parse_text

# The field of a text index that stands for all of its texts.
TEXT_FIELD = "_fts"


def compile_text(operand: Any, scope: Scope) -> Node:
    if "text" not in scope.features or not scope.is_top_level:
        raise bad_value("$text is not allowed in this context")
    search = parse_text(operand)
    return Node("text", search.matches, path=TEXT_FIELD, value=search)
