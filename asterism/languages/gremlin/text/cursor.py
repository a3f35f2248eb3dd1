"""The place of a parser in its tokens, and the refusals that name such a place."""

from __future__ import annotations

from typing import Any

from asterism.languages.gremlin.failure import METHOD_SCOPE, SYMBOL_SCOPE, SYNTAX_SCOPE, CompileFailure
from asterism.languages.gremlin.plan.instructions import DEPTH_MAX
from asterism.languages.gremlin.plan.kinds import type_names
from asterism.languages.gremlin.text.lexer import TokenList

# As much of a script as a refusal repeats.
_EXCERPT_CHARACTERS_MAX = 400
_NAME_CHARACTERS_MAX = 100


class Cursor:
    """Tokens, the index of the next of them, and the depth of what is open."""

    __slots__ = ("depth", "index", "lexed", "tokens")

    def __init__(self, text: str) -> None:
        self.lexed = TokenList(text)
        self.tokens = self.lexed.tokens
        self.index = 0
        self.depth = 0

    def open(self) -> None:
        """Enter parentheses, brackets or braces."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise self.syntax(f"The script is nested deeper than the {DEPTH_MAX} levels allowed", self.index)

    def expect(self, token: str) -> None:
        """Step over a token that must come next."""
        if self.tokens[self.index] != token:
            raise self.unexpected(missing=token)
        self.index += 1

    def unexpected(self, *, missing: str = ")") -> CompileFailure:
        """Return the refusal of the next token; at the end of the text, of the token that is missing there."""
        token = self.tokens[self.index]
        if not token:
            return self.syntax(f"Missing '{missing}'", self.index)
        if token == "{":
            return self.closure(self.index)
        if token == "->":
            # A lambda of Java begins with its parameter.
            return self.closure(max(0, self.index - 1))
        end = self.lexed.starts[self.index] + len(token)
        begin = max(0, end - _EXCERPT_CHARACTERS_MAX)
        excerpt = ("..." if begin else "") + self.lexed.text[begin:end]
        return self.syntax(f"Unexpected token: '{token[:_EXCERPT_CHARACTERS_MAX]}'; in input: '{excerpt}'.", self.index)

    def syntax(self, sentence: str, index: int) -> CompileFailure:
        """Return a refusal of the text at a token."""
        line, column = self.lexed.place(index)
        return CompileFailure(f"Script compile error: {sentence}", line=line, column=column, scope=SYNTAX_SCOPE)

    def closure(self, index: int) -> CompileFailure:
        """Return the refusal of a closure or lambda that begins at a token; without braces it ends with the text."""
        return self.groovy_rule("closure", index, self._end_of_braces(index))

    def groovy_rule(self, rule: str, first: int, last: int) -> CompileFailure:
        """Return the refusal of a part of Groovy, from one token to another."""
        begin = self.lexed.starts[first]
        end = self.lexed.starts[last] + len(self.tokens[last])
        excerpt = self.lexed.text[begin : min(end, begin + _EXCERPT_CHARACTERS_MAX)]
        line, column = self.lexed.place(first)
        return CompileFailure(
            f"Script compile error: Unsupported groovy language rule: '{rule}' text: '{excerpt}'",
            line=line,
            column=column,
            scope=SYNTAX_SCOPE,
        )

    def _end_of_braces(self, index: int) -> int:
        level = 0
        # An excerpt has no more tokens than characters, so the search can end there.
        last = min(len(self.tokens) - 1, index + _EXCERPT_CHARACTERS_MAX)
        for place in range(index, last):
            token = self.tokens[place]
            level += (token == "{") - (token == "}")
            if token == "}" and level <= 0:
                return place
        return last

    def unknown_symbol(self, name: str, index: int) -> CompileFailure:
        """Return the refusal of a name that nothing stands for."""
        line, column = self.lexed.place(index)
        sentence = f"Unable to resolve symbol '{name[:_NAME_CHARACTERS_MAX]}' in the current context."
        return CompileFailure(sentence, line=line, column=column, scope=SYMBOL_SCOPE)

    def unknown_method(self, name: str, index: int) -> CompileFailure:
        """Return the refusal of a call of a name at a token; the service shows the place behind the name."""
        return self._method(f"Unable to find any method '{name[:_NAME_CHARACTERS_MAX]}'", index + 1)

    def unfit_arguments(self, name: str, arguments: tuple[Any, ...], index: int) -> CompileFailure:
        """Return the refusal of the arguments of a call, whose name is a token."""
        return self._method(
            f"Unable to bind to method '{name}', with arguments of type: {type_names(arguments)}", index + 1
        )

    def _method(self, sentence: str, index: int) -> CompileFailure:
        line, column = self.lexed.place(index)
        return CompileFailure(sentence, line=line, column=column, scope=METHOD_SCOPE)
