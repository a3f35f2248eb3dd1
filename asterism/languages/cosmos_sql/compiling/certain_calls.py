"""The calls of users' functions that an expression makes for every row."""

from __future__ import annotations

from collections.abc import Iterator

from asterism.languages.cosmos_sql.compiling.distance import DISTANCE_CALLS
from asterism.languages.cosmos_sql.syntax import tree


def certain_calls(root: tree.Expression) -> Iterator[tree.Call]:
    """Yield the calls that every evaluation of `root` makes, and whose arguments depend only on the row."""
    waiting: list[tree.Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Call) and node.is_udf and _is_plain(node):
            yield node
        waiting.extend(_always_evaluated(node))


def _always_evaluated(node: tree.Node) -> Iterator[tree.Node]:
    """Yield the parts below `node` that every evaluation of it evaluates."""
    match node:
        case tree.And(operands=operands) | tree.Or(operands=operands):
            yield operands[0]
        case tree.Conditional(condition=condition):
            yield condition
        case tree.Coalesce(left=left):
            yield left
        case tree.In(needle=needle):
            yield needle
        case tree.Subquery():
            return
        # Their options are read once and never evaluated.
        case tree.Call(name=name, is_udf=False) if name in DISTANCE_CALLS:
            return
        case _:
            yield from tree.children(node)


def _is_plain(call: tree.Call) -> bool:
    return not any(
        isinstance(node, tree.Subquery) or (isinstance(node, tree.Call) and node.is_udf)
        for argument in call.arguments
        for node in tree.descendants(argument)
    )
