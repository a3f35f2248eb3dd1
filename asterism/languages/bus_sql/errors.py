"""The error of a rule that does not compile."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.errors import MalformedRequest


@dataclass(eq=False)
class MalformedRule(MalformedRequest):
    """`reason` is a sentence about the text at `position`, an offset in characters."""

    position: int = 0


def malformed(sentence: str, position: int) -> MalformedRule:
    return MalformedRule(reason=f"{sentence} See character {position + 1} of the expression.", position=position)
