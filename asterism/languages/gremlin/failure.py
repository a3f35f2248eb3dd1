"""Refusals in Gremlin's own words; a door adds the frame that its clients expect around the sentence."""

from __future__ import annotations


class GremlinFailure(Exception):
    """The root of the refusals of this language; never raised itself."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


# The parts of the service's compiler, which its messages name after "Scope :".
SYNTAX_SCOPE = "graphparse-translate-outer"
SYMBOL_SCOPE = "graphparse-translate-validatesymbolresolution"
METHOD_SCOPE = "graphparse-translate-csharpexpressionbinding"


class CompileFailure(GremlinFailure):
    """The text or the bytecode is no traversal: unknown names, arguments that do not fit, a syntax error.

    A place in the text, which bytecode lacks, is added to the sentence in the service's form.
    """

    def __init__(self, sentence: str, *, line: int = 0, column: int = 0, scope: str = METHOD_SCOPE) -> None:
        super().__init__(f"{sentence} @ line {line}, column {column}." if line else sentence)
        self.line = line
        self.column = column
        self.scope = scope


class ExecutionFailure(GremlinFailure):
    """The traversal cannot go on: a value that a step cannot use, a vertex without a partition key."""


class LimitExceeded(GremlinFailure):
    """A text, a plan or a loop is larger than the server's limits allow (the service answers it as throttling)."""


class MemoryExceeded(GremlinFailure):
    """The traversal would keep more in memory than one traversal may."""


class TimeExceeded(GremlinFailure):
    """The traversal takes longer than its time limit."""


class FailStep(GremlinFailure):
    """Raised by the step `fail()`."""
