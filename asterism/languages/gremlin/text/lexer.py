"""The lexer: one regular expression cuts a text into tokens, in time linear in its length."""

from __future__ import annotations

import re
from bisect import bisect_right

# A comment without an end is a token that no rule of the grammar takes.
UNCLOSED_COMMENT = "/*"

# Possessive repeats never go back, and a string or comment without an end goes to the end of the text: whatever is
# in a text, each character is looked at a fixed number of times.
_TOKEN = re.compile(
    r"""
      (   (?: [^\W\d] | \$ ) [\w$]*+                             # a name
        | [(),:\[\]{};]
        | \.\. | \. (?! \d )
        | \"\"\" (?: [^"\\]++ | \\. | "(?!"") )*+ (?: \"\"\" | \\?\Z )
        | ''' (?: [^'\\]++ | \\. | '(?!'') )*+ (?: ''' | \\?\Z )
        | " (?: [^"\\]++ | \\. )*+ (?: " | \\?\Z )
        | ' (?: [^'\\]++ | \\. )*+ (?: ' | \\?\Z )
        | [+-]? 0 [xX] \w*+                                      # a number, which is checked when it is read
        | [+-]? (?: \d [\d_]*+ (?: \. \d [\d_]*+ )? | \. \d [\d_]*+ ) (?: [eE] [+-]? \d [\d_]*+ )? \w*+
        | [+-] Infinity\b
        | -> | [^\s/] | / (?! [/*] )
      )
    | \s++
    | // [^\n]*+
    | /\* (?: [^*]++ | \* (?! / ) )*+ (?: \*/ | (\Z) )
    """,
    re.VERBOSE | re.DOTALL,
)


class TokenList:
    """The tokens of a text, ended by an empty token, and the place where each of them begins."""

    __slots__ = ("_line_starts", "starts", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        tokens: list[str] = []
        starts: list[int] = []
        for match in _TOKEN.finditer(text):
            token = match[1]
            if token is not None:
                tokens.append(token)
                starts.append(match.start())
            elif match.lastindex is not None:
                tokens.append(UNCLOSED_COMMENT)
                starts.append(match.start())
        # The end; twice, because the parser looks one token ahead.
        self.tokens = [*tokens, "", ""]
        self.starts = [*starts, len(text), len(text)]
        # A text of a single line needs no search for the line of a token.
        self._line_starts = _line_starts(text) if "\n" in text else None

    def place(self, index: int) -> tuple[int, int]:
        """Return line and column of a token, both from 1."""
        start = self.starts[index]
        if self._line_starts is None:
            return 1, start + 1
        line = bisect_right(self._line_starts, start)
        return line, start - self._line_starts[line - 1] + 1


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]
