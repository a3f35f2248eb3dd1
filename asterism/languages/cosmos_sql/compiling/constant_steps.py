"""Computed steps with the same value for all items: with `@name` = "a", `c[@name]` is the path `c.a`.

The policies of a container, its indexes and its partition key are known by path, so these steps are resolved before any
lookup by path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar, cast

from asterism.languages.cosmos_sql.compiling.aggregates import AGGREGATES
from asterism.languages.cosmos_sql.compiling.expression_compiler import ExpressionCompiler
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.functions import FUNCTIONS
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.select_names import names_of_select_items

_NodeType = TypeVar("_NodeType", bound=tree.Node)

_NO_STEP: Final = None
# No policy names longer properties, and a text of many calls that make such strings would fill the memory: longer steps
# are computed when the query runs.
_STEP_CHARACTERS_MAX: Final = 1024


def with_constant_steps(node: _NodeType, parameters: Mapping[str, object]) -> _NodeType:
    """Return `node` with each computed step that is the same for all items as part of its path.

    Properties of a SELECT list keep the names that the text gives them.
    """
    return cast(_NodeType, _resolve(node, ExpressionCompiler(Scope({}, parameters))))


def is_item_free(node: tree.Expression) -> bool:
    """Return whether the value is the same for every item and at every time."""
    return all(_is_timeless(below) for below in tree.descendants(node))


def _is_timeless(node: tree.Node) -> bool:
    if isinstance(node, tree.Call):
        function = FUNCTIONS.get(node.name)
        return not node.is_udf and function is not None and not function.needs_context and node.name not in AGGREGATES
    return not isinstance(node, tree.Path | tree.Subquery)


def _resolve(node: tree.Node, constants: ExpressionCompiler) -> tree.Node:
    changed = tree.with_children(node, partial(_resolve, constants=constants))
    if changed is not node and isinstance(node, tree.SelectList):
        return _with_names_of(node, cast(tree.SelectList, changed))
    if isinstance(changed, tree.Member) and isinstance(changed.target, tree.Path):
        step = _constant_step(changed.step, constants)
        if step is not _NO_STEP:
            return tree.Path(changed.target.alias, (*changed.target.steps, step), span=changed.span)
    return changed


def _with_names_of(written: tree.SelectList, changed: tree.SelectList) -> tree.SelectList:
    names = names_of_select_items(written.items)
    items = [replace(item, alias=name) for item, name in zip(changed.items, names, strict=True)]
    return replace(changed, items=tuple(items))


def _constant_step(node: tree.Expression, constants: ExpressionCompiler) -> str | int | None:
    if not is_item_free(node):
        return _NO_STEP
    try:
        value = constants.constant(node)
    except MalformedQuery:
        # The compiler refuses it later.
        return _NO_STEP
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is str:
        return value if len(value) <= _STEP_CHARACTERS_MAX else _NO_STEP
    return value if type(value) is int else _NO_STEP
