"""Query text to tokens, in one pass and in linear time.

Text that is not a token becomes one `BAD` token and ends the list, so that the parser reports the first error in
reading order, be it a stray character or a misplaced word.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# Values of `Token.symbol` for tokens with a value; keywords and operators are their own symbol.
IDENTIFIER: Final = "identifier"
PARAMETER: Final = "parameter"
STRING: Final = "string"
NUMBER: Final = "number"
END: Final = "end"
BAD: Final = "bad"

# Reserved in upper and lower case. RANK is missing on purpose: it has a meaning only after ORDER BY, and items have
# properties of that name.
_KEYWORDS_IN_ANY_CASE = """
    ALL AND ARRAY AS ASC BETWEEN BY DESC DISTINCT ESCAPE EXISTS FIRST FROM GROUP IN JOIN LAST LEFT LIKE LIMIT NOT OFFSET
    OR ORDER RIGHT SELECT TOP VALUE WHERE
"""
KEYWORDS: Final = frozenset(_KEYWORDS_IN_ANY_CASE.split())
# Keywords that may also name a property or an alias.
ALIAS_WORDS: Final = frozenset({"ALL", "FIRST", "LAST"})
# Reserved only as written here: in the dialect `TRUE` is an identifier.
EXACT_KEYWORDS: Final = frozenset({"true", "false", "null", "undefined", "udf"})

# Up to here every integer is a double; beyond, a literal with a point or an exponent becomes the nearest double.
EXACT_INTEGER_MAX: Final = 2**53
# Digits alone up to this are an integer: the magnitude of the smallest 64-bit integer.
INTEGER_LITERAL_MAX: Final = 2**63
_INTEGER_DIGITS_MAX: Final = 19

_ESCAPE = r"""\\(?:["'\\/bfnrt]|u[0-9a-fA-F]{4})"""
# The quantifiers are possessive: an unclosed string or comment is refused without trying its prefixes again.
_SPACE = r"(?: [ \t\r\n]++ | --[^\r\n]*+ | /\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/ )*+"
_TOKEN = re.compile(
    rf"""
    {_SPACE} (?:
      (?P<word>     [^\W\d]\w*+ )
    | (?P<operator> >>> | << | >> | <= | >= | <> | != | \|\| | \?\?
                  | \.(?![0-9]) | /(?!\*) | [-+*%=<>&|^~?:,()\[\]{{}}] )
    | (?P<param>    @\w++ )
    | (?P<number>   (?: [0-9]++(?:\.[0-9]*+)? | \.[0-9]++ ) (?:[eE][-+]?[0-9]++)? )
    | (?P<string>   "(?: [^"\\\x00-\x1f] | {_ESCAPE} )*+" | '(?: [^'\\\x00-\x1f] | {_ESCAPE} )*+' )
    | (?P<end>      \Z )
    )
    """,
    re.VERBOSE,
)
_LEADING_SPACE = re.compile(_SPACE, re.VERBOSE)
_UNCLOSED = re.compile(r"""["'][^\r\n]*+|/\*|.""", re.DOTALL)
_ESCAPED_OR_QUOTE = re.compile(r'\\.|"', re.DOTALL)


class Token(NamedTuple):
    """A token; `value` is the literal's value, or the text of a name."""

    symbol: str
    text: str
    start: int
    end: int
    value: object


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of `text`, each when it is needed; the last is END, or BAD at text that is not a token."""
    symbol = ""
    position = 0
    while symbol not in (END, BAD):
        found = _TOKEN.match(text, position)
        if found is None:
            yield _bad_token(text, position)
            return
        kind = found.lastgroup
        piece = found[kind or 0]
        position = found.end()
        value: object = piece
        if kind == "operator":
            symbol = piece
        elif kind == "word":
            symbol = _symbol_of_word(piece)
        else:
            symbol, value = _symbol_and_value(kind, piece)
        yield Token(symbol, piece, position - len(piece), position, value)


def _symbol_and_value(kind: str | None, text: str) -> tuple[str, object]:
    match kind:
        case "param":
            return PARAMETER, text
        case "string":
            string = _string_value(text)
            return (BAD if string is None else STRING), string
        case "number":
            number = _number_value(text)
            return (BAD if number is None else NUMBER), number
        case _:
            return END, None


def _symbol_of_word(word: str) -> str:
    if word in EXACT_KEYWORDS:
        return word
    upper = word.upper()
    return upper if upper in KEYWORDS else IDENTIFIER


def _string_value(text: str) -> str | None:
    """Return the value of a string literal, or None if its escapes leave half a surrogate pair, which is not JSON."""
    body = text[1:-1]
    if "\\" not in body:
        return body
    value: str = json.loads(f'"{_ESCAPED_OR_QUOTE.sub(_as_json_escape, body)}"')
    return None if any("\ud800" <= character <= "\udfff" for character in value) else value


def _as_json_escape(found: re.Match[str]) -> str:
    text = found.group()
    return {"\\'": "'", '"': '\\"'}.get(text, text)


def _number_value(text: str) -> int | float | None:
    """Return the value of a number literal, or None if it is larger than any double."""
    if len(text) <= _INTEGER_DIGITS_MAX and text.isdecimal() and int(text) <= INTEGER_LITERAL_MAX:
        return int(text)
    value = float(text)
    if math.isinf(value):
        return None
    return int(value) if value <= EXACT_INTEGER_MAX and value.is_integer() else value


def _bad_token(text: str, position: int) -> Token:
    space = _LEADING_SPACE.match(text, position)
    start = space.end() if space else position
    found = _UNCLOSED.match(text, start)
    end = found.end() if found else start
    return Token(BAD, text[start:end], start, end, None)
