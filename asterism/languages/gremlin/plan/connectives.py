"""Infix `and()` and `or()`: `a.and().b` becomes `and(a, b)`; `or` binds less tightly than `and`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from asterism.languages.gremlin.tree import Instruction, Traversal

# The first steps of a traversal, which are no part of a condition behind them.
_SOURCES = frozenset({"V", "E", "inject", "addV", "addE", "mergeV", "mergeE", "union", "call"})


def with_connectives(instructions: Sequence[Instruction], *, is_start: bool) -> tuple[Instruction, ...]:
    """Return the chain with each infix connective as a call with its parts as traversals."""
    chain = tuple(instructions)
    if not any(_is_infix(instruction) for instruction in chain):
        return chain
    begin = _end_of_source(chain) if is_start else 0
    return chain[:begin] + _connected(chain[begin:], ("or", "and"))


def _is_infix(instruction: Instruction, names: tuple[str, ...] = ("or", "and")) -> bool:
    return instruction.name in names and not instruction.arguments


def _end_of_source(chain: tuple[Instruction, ...]) -> int:
    """Return where the source with its labels ends. Steps that are not taken as sources are parts of the condition."""
    if chain[0].name not in _SOURCES:
        return 0
    end = 1
    while end < len(chain) and chain[end].name == "as":
        end += 1
    return end


def _connected(chain: tuple[Instruction, ...], names: tuple[str, ...]) -> tuple[Instruction, ...]:
    if not names:
        return chain
    name, *others = names
    markers = [place for place, instruction in enumerate(chain) if _is_infix(instruction, (name,))]
    if not markers:
        return _connected(chain, tuple(others))
    bounds = [-1, *markers, len(chain)]
    parts = [Traversal(_connected(chain[begin + 1 : end], tuple(others))) for begin, end in pairwise(bounds)]
    marker = chain[markers[0]]
    return (Instruction(name, tuple(parts), marker.line, marker.column),)
