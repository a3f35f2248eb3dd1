"""The tokens of a query."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from asterism.languages.blob_sql.errors import MalformedBlobQuery

# The limit of the service.
QUERY_CHARACTERS_MAX: Final = 256 * 1024
# Trees and closures take some hundred bytes for each token.
TOKENS_MAX: Final = 20_000

_TOKEN: Final = re.compile(
    r"""(?:
      (?P<blank>\s+|--[^\n]*|/\*.*?\*/)
    | "(?P<quoted>(?:[^"]|"")+)"
    | '(?P<string>(?:[^']|'')*)'
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
    | (?P<word>[^\W\d]\w*|\$\w+)
    | (?P<sign><>|!=|<=|>=|\|\||[-+*/%=<>(),.;\[\]])
    )""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """`kind` is word, name (quoted), string, number, sign or end; `text` has no quotes."""

    kind: str
    text: str
    position: int

    @property
    def keyword(self) -> str:
        """The word in capitals, or nothing if it was quoted or is not a word."""
        return self.text.upper() if self.kind == "word" else ""


def tokens_of(text: str) -> list[Token]:
    if len(text) > QUERY_CHARACTERS_MAX:
        raise MalformedBlobQuery(f"The query has more than {QUERY_CHARACTERS_MAX} characters.", 0)
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise MalformedBlobQuery("The text is not a name, a literal or an operator.", at)
        kind = str(found.lastgroup)
        if kind != "blank":
            if len(tokens) == TOKENS_MAX:
                raise MalformedBlobQuery(f"The query has more than {TOKENS_MAX} words and signs.", at)
            tokens.append(_token(kind, found[kind], at))
        at = found.end()
    tokens.append(Token("end", "", at))
    return tokens


def _token(kind: str, text: str, position: int) -> Token:
    match kind:
        case "quoted":
            return Token("name", text.replace('""', '"'), position)
        case "string":
            return Token("string", text.replace("''", "'"), position)
        case _:
            return Token(kind, text, position)
